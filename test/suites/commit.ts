/** Commits of tests and benches. */
import { address } from "../../runtime/actor/address.ts"
import type { Commit } from "../../runtime/ports/storage.ts"

export const alice = address("mailbox", "alice")

/** A commit with only these changes; of a new actor, `alice`, by default. */
export const commitOf = (changes: Partial<Commit>): Commit => ({
  address: alice,
  expected: 0,
  state: undefined,
  head: 0,
  append: [],
  remove: [],
  timer: undefined,
  signals: [],
  consumedSignal: undefined,
  firedTimer: undefined,
  ...changes
})
