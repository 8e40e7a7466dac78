/** The timer service: durable deadlines of the shards that this node owns. */
export { type Deliver, TimerService } from "./timer-service.ts"
