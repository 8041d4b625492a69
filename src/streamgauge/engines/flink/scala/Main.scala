package streamgauge.flink

import org.apache.flink.api.common.JobStatus
import org.apache.flink.configuration.Configuration
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment

import streamgauge._

object Main {
  def main(arguments: Array[String]): Unit = {
    val plan = Plan.read(arguments(0))
    val status = new Status(plan.scratch)
    try {
      val env = StreamExecutionEnvironment.createLocalEnvironment(plan.parallelism, configuration(plan))
      new Lowering(plan, env).run()
      val job = env.executeAsync("streamgauge")
      val end = job.getJobExecutionResult // asked first, because a cluster that has ended has no answer
      while (!end.isDone && (job.getJobStatus.get == JobStatus.INITIALIZING || job.getJobStatus.get == JobStatus.CREATED)) Thread.sleep(20)
      if (!end.isDone) status.set("running")
      end.get()
      status.fail(new IllegalStateException("the job ended by itself"))
    } catch { case error: Throwable => status.fail(error) }
  }

  private def configuration(plan: Plan): Configuration = {
    val all = new Configuration
    plan.options.foreach { case (name, value) => all.setString(name, value) }
    plan.restore.foreach(all.setString("execution.state-recovery.path", _))
    all
  }
}
