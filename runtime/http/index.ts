/** An optional HTTP face for defined actors. It needs no server of its own, and no package. */
export { expose, type ExposedActor, type ExposeOptions } from "./expose.ts"
export { type HttpAccess, type HttpDecision, httpFace, type HttpFaceOptions } from "./face.ts"
export { type MessageOutcome, unauthenticated } from "./problem.ts"
