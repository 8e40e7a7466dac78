/** The timer service: durable timers and signals of the shards that this node owns. */
export { type Deliver, type FiredSignal, type FiredTimer, latestRevision,
  TimerService } from "./timer-service.ts"
