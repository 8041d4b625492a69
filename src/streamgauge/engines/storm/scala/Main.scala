package streamgauge.storm

import org.apache.storm.{Config, LocalCluster}
import org.apache.storm.topology.TopologyBuilder

import streamgauge._

/** Says that the job runs when every task of ours is open. Everything is in one JVM. */
object Tasks {
  private var expected = Int.MaxValue; private var opened = 0
  private var status: Status = _

  def report(to: Status): Unit = synchronized { status = to }
  def expect(number: Int): Unit = synchronized { expected = number }
  def open(): Unit = synchronized { opened += 1; if (opened == expected) status.set("running") }

  /** Ends the process with the reason of a failure. */
  def guarded(work: => Unit): Unit = try work catch { case error: Throwable => status.fail(error) }
}

object Main {
  def main(arguments: Array[String]): Unit = {
    val plan = Plan.read(arguments(0))
    val status = new Status(plan.scratch)
    try {
      Tasks.report(status)
      val builder = new TopologyBuilder
      new Lowering(plan, builder).run()
      val cluster = new LocalCluster.Builder().withSupervisors(1).withPortsPerSupervisor(1).build()
      cluster.submitTopology("streamgauge", configuration(plan), builder.createTopology())
      Thread.currentThread.join()
    } catch { case error: Throwable => status.fail(error) }
  }

  private def configuration(plan: Plan): Config = {
    val all = new Config
    for ((name, value) <- plan.options if !name.startsWith("streamgauge.")) all.put(name, value.toIntOption.map(Integer.valueOf).getOrElse(value))
    all
  }
}
