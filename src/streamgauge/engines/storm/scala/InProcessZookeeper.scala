package org.apache.storm.testing

import java.net.{InetAddress, InetSocketAddress}

import org.apache.storm.shade.org.apache.zookeeper.server.{NIOServerCnxnFactory, ZooKeeperServer}

/** Takes the place of Storm's own class of this name, which listens on all interfaces. */
class InProcessZookeeper extends AutoCloseable {
  private val folder = new TmpPath
  private val factory = new NIOServerCnxnFactory
  factory.configure(new InetSocketAddress(InetAddress.getLoopbackAddress, 0), 0)
  factory.startup(new ZooKeeperServer(new java.io.File(folder.getPath), new java.io.File(folder.getPath), 2000))

  def getPort: Long = factory.getLocalPort

  override def close(): Unit = { factory.shutdown(); folder.close() }
}
