/** Verification of a store, and of everything that a node needs. */
export { check } from "./check.ts"
export { examine } from "./doctor.ts"
export { checkStoredAudit } from "./stored-audit.ts"
