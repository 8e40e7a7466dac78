/**
 * A paused owner continues a write after its successor has started: the fence of the store rejects
 * the late write. Without the fence the check below finds the lost messages.
 */
import { Effect } from "effect"
import { afterEach, expect, it } from "vitest"
import type { LogItem } from "../../runtime/actor/behavior.ts"
import { type Address, keyOf } from "../../runtime/index.ts"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import type { StorageApi } from "../../runtime/ports/storage.ts"
import { at, type Reply } from "../runtime/probe.ts"
import { dropAll, type Rig, scripted, start } from "../runtime/rig.ts"

afterEach(dropAll)

const box = at("box")
const before = 5
const meanwhile = 5

/** A store without a fence: it accepts every write. */
const withoutFence = (): StorageApi => {
  const inner = makeMemoryStorage()
  const logs = new Map<string, Map<number, string>>()
  const logOf = (of: Address) => {
    const log = logs.get(keyOf(of)) ?? new Map<number, string>()
    logs.set(keyOf(of), log)
    return log
  }
  const itemsOf = (of: Address): ReadonlyArray<LogItem> =>
    [...logOf(of)].map(([n, value]) => ({ n, value })).sort((one, other) => one.n - other.n)
  return {
    ...inner,
    commit: (group) =>
      Effect.sync(() =>
        group.map(({ address, append, expected }) => {
          for (const { n, value } of append) logOf(address).set(n, value)
          return { _tag: "Committed", revision: expected, signalRevisions: [] }
        })
      ),
    load: (of) =>
      Effect.sync(() => ({
        state: undefined,
        revision: 0,
        head: itemsOf(of).at(-1)?.n ?? 0,
        timer: undefined
      })),
    read: (of, from, limit) =>
      Effect.sync(() => itemsOf(of).filter(({ n }) => n >= from).slice(0, limit))
  }
}

/** The accepted texts, with the log position in each reply. */
type Accepted = Map<string, number>

const deposit = async ({ ask }: Rig, text: string, accepted: Accepted): Promise<void> => {
  const reply: Reply | string = await ask(box, { _tag: "Note", text })
  if (typeof reply !== "string") accepted.set(text, reply.head)
}

/** Accepted texts that are not at the position of their reply. */
const lost = (accepted: Accepted, log: ReadonlyArray<LogItem>): ReadonlyArray<string> =>
  [...accepted].filter(([text, n]) => log.find((item) => item.n === n)?.value !== text)
    .map(([text]) => text)

/** Pauses an owner in the middle of a write, lets a successor work, and resumes the owner. */
const pausedOwner = async (storage: StorageApi) => {
  const pausing = scripted(storage)
  const owner = await start({}, { storage: pausing })
  const accepted: Accepted = new Map()
  for (let n = 0; n < before; n += 1) await deposit(owner, `before${n}`, accepted)
  pausing.gate.close()
  const late = deposit(owner, "late", accepted)
  const successor = await start({}, { storage })
  for (let n = 0; n < meanwhile; n += 1) await deposit(successor, `meanwhile${n}`, accepted)
  pausing.gate.open()
  await late
  await deposit(owner, "later", accepted)
  await deposit(successor, "afterwards", accepted)
  const log = await Effect.runPromise(storage.read(box, 1, 1_000))
  return { accepted, log }
}

it("a paused owner does not overwrite its successor", async () => {
  const { accepted, log } = await pausedOwner(makeMemoryStorage())
  expect(lost(accepted, log)).toEqual([])
  expect(accepted.size).toBe(before + meanwhile + 3)
  expect(log.map(({ value }) => value).sort()).toEqual([...accepted.keys()].sort())
})

it("without the fence it does, and the same check detects it", async () => {
  const { accepted, log } = await pausedOwner(withoutFence())
  expect(accepted.size).toBe(before + meanwhile + 3)
  expect(lost(accepted, log)).not.toEqual([])
})
