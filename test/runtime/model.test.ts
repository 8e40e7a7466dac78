/** Any interleaving of asks, lost commits and crashes equals a simple model. */
import { Effect } from "effect"
import fc from "fast-check"
import { afterEach, expect, it } from "vitest"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import { at, type Reply } from "./probe.ts"
import { type Act, dies, dropAll, fails, isFull, keptAndHangs, scripted, start,
  turns } from "./rig.ts"

afterEach(dropAll)

const ids = ["a", "b"] as const

type Event =
  | { readonly _tag: "Add" | "Note" | "Read"; readonly id: "a" | "b" }
  | { readonly _tag: "Lose"; readonly act: "fails" | "isFull" | "dies" | "keptAndHangs" }
  | { readonly _tag: "Turn"; readonly turns: number }
  | { readonly _tag: "Crash" }

const acts: Record<string, Act> = { fails, isFull, dies, keptAndHangs }

const event: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      _tag: fc.constantFrom("Add" as const, "Note" as const, "Read" as const),
      id: fc.constantFrom(...ids)
    })
  },
  {
    weight: 2,
    arbitrary: fc.record({
      _tag: fc.constant("Lose" as const),
      act: fc.constantFrom(
        "fails" as const,
        "isFull" as const,
        "dies" as const,
        "keptAndHangs" as const
      )
    })
  },
  { weight: 3, arbitrary: fc.record({ _tag: fc.constant("Turn" as const), turns: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("Crash" as const) }) }
)

/** The knowledge of one actor from its replies alone. */
interface Known {
  asked: number
  acknowledged: number
  /** The greatest count in any reply. */
  shown: number
  noted: Map<string, number>
  tried: Set<string>
}

const limits = { storageDeadlineMs: 25, reloadDelayMs: 1, decisionAttemptsMax: 3 }

const play = async (events: ReadonlyArray<Event>): Promise<void> => {
  const storage = scripted(makeMemoryStorage())
  const known = new Map<string, Known>(
    ids.map((id) => [
      id,
      { asked: 0, acknowledged: 0, shown: 0, noted: new Map(), tried: new Set() }
    ])
  )
  let node = await start({ limits }, { storage })
  let answers: Array<Promise<void>> = []
  let notes = 0
  const ask = (id: string, tag: "Add" | "Note" | "Read"): void => {
    const of = known.get(id)
    if (of === undefined) return
    const text = `n${notes++}`
    const shownBefore = of.shown
    if (tag === "Add") of.asked++
    if (tag === "Note") of.tried.add(text)
    const message = tag === "Add"
      ? { _tag: tag, by: 1 } as const
      : tag === "Note"
      ? { _tag: tag, text } as const
      : { _tag: tag } as const
    answers.push(
      node.ask(at(id), message).then((reply: Reply | string) => {
        if (typeof reply === "string") return
        // No reply has a smaller count than a reply from before its request.
        expect(reply.count).toBeGreaterThanOrEqual(shownBefore)
        of.shown = Math.max(of.shown, reply.count)
        if (tag === "Add") of.acknowledged++
        if (tag === "Note") of.noted.set(text, reply.head)
      })
    )
  }
  for (const step of events) {
    if (step._tag === "Turn") await turns(step.turns)
    else if (step._tag === "Lose") storage.acts.push(acts[step.act] ?? fails)
    else if (step._tag === "Crash") {
      await node.drop()
      // The end of a node answers every waiting caller.
      await Promise.all(answers.splice(0))
      node = await start({ limits }, { storage })
    } else ask(step.id, step._tag)
  }
  await Promise.all(answers)
  answers = []
  storage.acts.length = 0
  await node.drop()
  node = await start({ limits }, { storage })
  for (const [id, of] of known) {
    const reply = await node.ask(at(id), { _tag: "Read" })
    const count = typeof reply === "string" ? -1 : reply.count
    // Every acknowledged change is stored, exactly once.
    expect(count).toBeGreaterThanOrEqual(Math.max(of.acknowledged, of.shown))
    expect(count).toBeLessThanOrEqual(of.asked)
    const log = await Effect.runPromise(storage.read(at(id), 1, 10_000))
    expect(log.map(({ n }) => n)).toEqual(log.map((_, index) => index + 1))
    const values = log.map(({ value }) => value)
    expect(new Set(values).size).toBe(values.length)
    for (const value of values) expect(of.tried.has(value)).toBe(true)
    for (const [text, n] of of.noted) expect(values[n - 1]).toBe(text)
  }
  await node.drop()
}

it(
  "stores what it acknowledged, shows nothing that a crash reverts, repeats nothing",
  async () => {
    await fc.assert(fc.asyncProperty(fc.array(event, { maxLength: 40 }), play), { numRuns: 60 })
  },
  60_000
)
