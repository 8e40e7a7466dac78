/** The check whether a node commits and reads (protocol §6). */
export { makeTurn, readiness, readinessAddress, readinessKind } from "./actor.ts"
