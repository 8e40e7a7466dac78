/** Simulations of a user's actors. */
export type { ActorModel, AnyActorModel, ClientAttempt, ClientTurn, Draw, Invariant, ReceivedReply,
  SimulatedHost, SimulatedRequest, SimulateOptions, SimulationNoise, SimulationView,
  TestedActor } from "./options.ts"
export { behaviorOf } from "./options.ts"
export { OutsideFailure } from "./outside.ts"
export { request, withMessage } from "./request.ts"
export { simulate, SimulationFailed, type SimulationSummary } from "./simulate.ts"
