/** Group commit, and the guard that rejects commits of a node whose claim has ended. */
export { type CertainOutcome, type CommitSource, Committer } from "./committer.ts"
export { withLeaseGuard } from "./lease-guard.ts"
