/**
 * Planted bugs, which test the simulation: each replaces a part of the real system through its
 * ports and tables.
 */
import { type ApplyCommit, faithful, type NodeLater } from "../../runtime/testing/index.ts"
import type { RegistrationAction, RegistrationMessage, RegistrationReply,
  RegistrationState } from "../../actors/registration/protocol.ts"
import { registrationKind } from "../../actors/index.ts"
import type { AnyBehavior, Behavior } from "../../runtime/index.ts"
import { Effect } from "effect"
import type { Commit, StorageApi } from "../../runtime/ports/storage.ts"
import { plantedCells } from "./planted-cells.ts"
import { plantedJetStream } from "./planted-jetstream.ts"
import { plantedRecords } from "./planted-records.ts"
import { plantedRequests } from "./planted-requests.ts"
import { plantedStores } from "./planted-stores.ts"
import type { WorldSeams } from "./world.ts"

export type Planted = WorldSeams

type Registered = Extract<RegistrationState, { readonly _tag: "Registered" }>

/** How long after its commit a separate timer is written, ms. */
const APART_MS = 5_000
/** How long after its reply a commit is submitted, ms; and the invented revisions. */
const LATER_MS = 150
const GIVEN_UP_MS = 3_000
const REPORTED_FROM = 1_000_000_000

/** Writes without comparing revisions. */
const withoutFence: ApplyCommit = (inner, commit) => {
  const { head, revision } = Effect.runSync(inner.load(commit.address))
  const append = commit.append.map(({ value }, at) => ({ n: head + 1 + at, value }))
  const next = Math.max(commit.head, append.at(-1)?.n ?? 0)
  return faithful(inner, { ...commit, expected: revision, append, head: next })
}

/** Writes a timer after its commit, if the node still runs. */
const timersApart: ApplyCommit = (inner, commit, later) => {
  const { address, timer } = commit
  if (typeof timer !== "number" || commit.state === null) return faithful(inner, commit)
  const outcome = faithful(inner, { ...commit, timer: undefined })
  later(APART_MS, () => {
    const { head, revision } = Effect.runSync(inner.load(address))
    const alone = {
      ...commit,
      state: undefined,
      append: [],
      remove: [],
      signals: [],
      consumedSignal: undefined
    }
    faithful(inner, { ...alone, expected: revision, head })
  })
  return outcome
}

/** Acknowledges a group, and submits it to the store later. */
const repliesFirst = (real: StorageApi, later: NodeLater): StorageApi => {
  /** The real revisions by the invented ones. */
  const revisions = new Map<number, number>()
  let reported = REPORTED_FROM
  let under = Promise.resolve()
  const handIn = (group: ReadonlyArray<Commit>, reports: ReadonlyArray<number>): Promise<void> =>
    new Promise((resolve) => {
      later(GIVEN_UP_MS, resolve)
      later(LATER_MS, () => {
        const commits = group.map((one) => ({
          ...one,
          expected: revisions.get(one.expected) ?? one.expected
        }))
        Effect.runFork(real.commit(commits)).addObserver((exit) => {
          if (exit._tag === "Success") {
            for (const [at, outcome] of exit.value.entries()) {
              if (outcome._tag === "Committed") revisions.set(reports[at] ?? 0, outcome.revision)
            }
          }
          resolve()
        })
      })
    })
  return {
    ...real,
    commit: (group) =>
      Effect.sync(() => {
        const reports = group.map(({ expected, state }) =>
          state === undefined ? expected : state === null ? 0 : ++reported
        )
        under = under.then(() => handIn(group, reports))
        return reports.map((revision) => ({
          _tag: "Committed" as const,
          revision,
          signalRevisions: []
        }))
      }),
    load: (address) => Effect.andThen(Effect.promise(() => under), real.load(address))
  }
}

/** A push that begins counts as acknowledged. */
const cursorFirst = (behavior: AnyBehavior): AnyBehavior => {
  if (behavior.kind !== registrationKind) return behavior
  // The list of behaviors has lost the types of the registration.
  const { table, ...rest } = behavior as unknown as Behavior<
    RegistrationState,
    RegistrationMessage,
    RegistrationReply,
    RegistrationAction
  >
  const { Registered } = table
  type Cell<Tag extends "Checked" | "TimerFired"> = typeof Registered[Tag]
  const advanced = <Tag extends "Checked" | "TimerFired">(cell: Cell<Tag>): Cell<Tag> =>
    ((state: Registered, message: never, context: never) => {
      // Each of the two cells has its own message type.
      const decision = (cell as (...asked: ReadonlyArray<unknown>) => ReturnType<Cell<"Checked">>)(
        state,
        message,
        context
      )
      const next = decision.nextState
      if (next?._tag === "Registered" && next.pushing !== undefined && !state.mailboxGone) {
        decision.nextState = { ...next, cursor: next.pushing }
      }
      return decision
    }) as Cell<Tag>
  return {
    ...rest,
    table: {
      ...table,
      Registered: {
        ...Registered,
        Checked: advanced<"Checked">(Registered.Checked),
        TimerFired: advanced<"TimerFired">(Registered.TimerFired)
      }
    }
  } as unknown as AnyBehavior
}

/** The planted bugs by name. */
export const planted: Readonly<Record<string, Planted>> = {
  "no-fence": { apply: withoutFence },
  "reply-before-commit": { storage: repliesFirst },
  "timer-apart": { apply: timersApart },
  "cursor-early": { behaviors: (all) => all.map(cursorFirst) },
  "handoff-without-drain": {
    placement: (real) => ({
      ...real,
      follow: (taken, lost) =>
        real.follow(taken, (shard) => {
          void lost(shard)
          return Promise.resolve()
        })
    })
  },
  ...plantedCells,
  ...plantedStores,
  ...plantedJetStream,
  ...plantedRequests,
  ...plantedRecords
}
