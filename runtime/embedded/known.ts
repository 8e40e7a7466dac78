/** What the database tells of an actor: its record, and the log that belongs to it. */
import { StorageDamaged } from "../errors.ts"
import type { EngineSnapshot } from "./engine.ts"
import * as keys from "./keys.ts"

/** An actor as it is in the database. */
export interface FoundActor {
  readonly known: ActorFence
  readonly state: string | undefined
}

/** What the fences need to know of an actor. */
export interface ActorFence {
  readonly revision: number
  readonly head: number
  /** Names the actor's log, see {@link keys.logPrefix}; 0 when it has neither log nor record. */
  readonly epoch: number
  readonly prefix: string
}

export const unknown: ActorFence = { revision: 0, head: 0, epoch: 0, prefix: "" }

/** `<revision> <head> <epoch>` and the text, on the lines of a state record. */
export const parseRecord = (
  record: string
): { revision: number; head: number; epoch: number; state: string } => {
  const end = record.indexOf("\n")
  const [revision, head, epoch] = record.slice(0, end).split(" ").map(Number)
  if (
    end < 0 || !Number.isSafeInteger(revision) || revision === undefined || head === undefined ||
    epoch === undefined
  ) throw new StorageDamaged({ detail: `unreadable state record: ${record.slice(0, 60)}` })
  return { revision, head, epoch, state: record.slice(end + 1) }
}

/** The record of an actor, and the epoch of a log without one. */
export const recordsOf = (view: EngineSnapshot, key: string) => {
  const [record, bare] = view.getTexts([keys.actorKey(key), keys.bareKey(key)])
  return { parsed: record === undefined ? undefined : parseRecord(record), bare }
}

/** Names the log of an actor, 0 when it has neither log nor record. */
export const epochOf = (
  { bare, parsed }: {
    readonly parsed: { readonly epoch: number } | undefined
    readonly bare: string | undefined
  }
): number => parsed?.epoch ?? Number(bare ?? 0)

/** An actor as a view shows it; `head` where it is known already. */
export const lookUpIn = (
  view: EngineSnapshot,
  key: string,
  head: number | undefined
): FoundActor | Promise<FoundActor> => {
  const records = recordsOf(view, key)
  const { parsed } = records
  const epoch = epochOf(records)
  if (epoch === 0) return { known: unknown, state: undefined }
  const prefix = keys.logPrefix(epoch)
  const revision = parsed?.revision ?? 0
  const foundOf = (last: number): FoundActor => ({
    known: { revision, head: Math.max(parsed?.head ?? 0, last), epoch, prefix },
    state: parsed?.state
  })
  if (head !== undefined) return foundOf(head)
  const last = view.lastKey(prefix, keys.logEnd(prefix))
  return last instanceof Promise
    ? last.then((name) => foundOf(keys.lastNumber(name ?? "0")))
    : foundOf(keys.lastNumber(last ?? "0"))
}
