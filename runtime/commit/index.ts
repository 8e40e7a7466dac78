/** Group commit, and the guard that rejects commits of a node whose claim has ended. */
export { type CommitSource, Committer, type KnownOutcome } from "./committer.ts"
export { withLeaseGuard } from "./lease-guard.ts"
