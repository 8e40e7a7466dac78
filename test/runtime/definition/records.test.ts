/** Records of definitions: what is stored, versions, and programs that are rolled back. */
import { expect, it } from "vitest"
import { become, defineActor, memory, migration, Schema, startNode, stay,
  type Store } from "../../../runtime/main.ts"

/** The first program: an account with an amount. */
const first = defineActor("account", {
  state: { Open: { amount: Schema.Number, owner: Schema.Struct({ name: Schema.String }) } },
  messages: { Add: { by: Schema.Number }, Read: {} },
  initial: { _tag: "Open", amount: 0, owner: { name: "ann" } },
  table: {
    Open: {
      Add: ({ amount, owner }, { by }) =>
        become({ _tag: "Open", amount: amount + by, owner }).reply(amount + by),
      Read: ({ amount }) => stay().reply(amount)
    }
  }
})

/** The same with optional fields: the version stays. */
const withNotes = defineActor("account", {
  state: {
    Open: {
      amount: Schema.Number,
      owner: Schema.Struct({ name: Schema.String, mail: Schema.optionalKey(Schema.String) }),
      note: Schema.optionalKey(Schema.String)
    }
  },
  messages: { Note: { note: Schema.String }, Read: {} },
  initial: { _tag: "Open", amount: 0, owner: { name: "ann" } },
  table: {
    Open: {
      Note: (state, { note }) =>
        become({ ...state, note, owner: { ...state.owner, mail: `${note}@example.org` } }),
      Read: ({ note = "", owner }) => stay().reply(`${note} ${owner.mail}`)
    }
  }
})

const inCents = (writes: number | undefined) =>
  defineActor("account", {
    state: { Open: { cents: Schema.Int, owner: Schema.Struct({ name: Schema.String }) } },
    messages: { Add: { cents: Schema.Int }, Read: {} },
    migrations: [
      migration(
        { Open: { amount: Schema.Number, owner: Schema.Struct({ name: Schema.String }) } },
        ({ amount, owner }) => ({ _tag: "Open", cents: Math.round(amount * 100), owner }),
        ({ cents, owner }: { cents: number; owner: { name: string } }) => ({
          _tag: "Open",
          amount: cents / 100,
          owner
        })
      )
    ],
    ...(writes === undefined ? {} : { writes }),
    initial: { _tag: "Open", cents: 0, owner: { name: "ann" } },
    table: {
      Open: {
        Add: ({ cents, owner }, message) =>
          become({ _tag: "Open", cents: cents + message.cents, owner }),
        Read: ({ cents }) => stay().reply(cents)
      }
    }
  })

/** Runs a program of one definition on the store, as one release of it would. */
const release = async <A>(
  store: Store,
  actor: Parameters<typeof startNode>[0]["actors"][number],
  use: (node: Awaited<ReturnType<typeof startNode>>) => Promise<A>
): Promise<A> => {
  const node = await startNode({ actors: [actor], store })
  try {
    return await use(node)
  } finally {
    await node.stop()
  }
}

it("stores states as JSON by their Schema, and reads them back", () => {
  const dated = defineActor("dated", {
    state: { At: { at: Schema.DateFromString, tags: Schema.Array(Schema.String) } },
    messages: { Read: {} },
    initial: { _tag: "At", at: new Date(0), tags: [] },
    table: { At: { Read: () => stay() } }
  })
  const { decode, encode, initial } = dated.behavior
  const text = encode(initial, 1, dated("a"))
  expect(JSON.parse(text)).toEqual({ _tag: "At", at: "1970-01-01T00:00:00.000Z", tags: [] })
  expect(decode(text, 1, dated("a"))).toEqual(initial)
})

it("keeps the fields of a later program while an older one runs", async () => {
  const store = memory()
  await release(store, withNotes, (node) => node.ask(withNotes("a"), { _tag: "Note", note: "hi" }))
  expect(await release(store, first, (node) => node.ask(first("a"), { _tag: "Add", by: 2 })))
    .toBe(2)
  expect(await release(store, withNotes, (node) => node.ask(withNotes("a"), { _tag: "Read" })))
    .toBe("hi hi@example.org")
})

it("migrates states, first reading the new version and then writing it", async () => {
  const store = memory()
  const cents = (writes?: number) => {
    const actor = inCents(writes)
    return release(store, actor, async (node) => {
      await node.ask(actor("a"), { _tag: "Add", cents: 5 })
      return node.ask(actor("a"), { _tag: "Read" })
    })
  }
  const amount = () => release(store, first, (node) => node.ask(first("a"), { _tag: "Read" }))
  await release(store, first, (node) => node.ask(first("a"), { _tag: "Add", by: 1.2 }))
  expect(await cents(1)).toBe(125)
  // A rollback to the first program.
  expect(await amount()).toBe(1.25)
  expect(await cents(1)).toBe(130)
  expect(await cents()).toBe(135)
  // A rollback to the program that writes the old version.
  expect(await cents(1)).toBe(140)
  expect(await amount()).toBe(1.4)
})

it("refuses a record of a version that it does not know, and leaves it as it is", async () => {
  const store = memory()
  const actor = inCents(undefined)
  await release(store, actor, (node) => node.ask(actor("a"), { _tag: "Add", cents: 7 }))
  await release(store, first, async (node) => {
    await expect(node.ask(first("a"), { _tag: "Read" })).rejects.toThrow()
  })
  expect(await release(store, actor, (node) => node.ask(actor("a"), { _tag: "Read" }))).toBe(7)
  const text = actor.behavior.encode(actor.behavior.initial, 1, actor("a"))
  expect(() => first.behavior.decode(text, 1, first("a"))).toThrow(
    "an actor of kind account is stored in version 2, and this program reads versions up to 1: " +
      "start a program that reads it"
  )
})

it("refuses to write a version to which no way leads back", () => {
  const define = (writes: number) =>
    defineActor("account", {
      state: { New: {} },
      messages: { Read: {} },
      migrations: [migration({ Old: {} }, () => ({ _tag: "New" }))],
      writes,
      initial: { _tag: "New" },
      table: { New: { Read: () => stay() } }
    })
  expect(() => define(1)).toThrow("its migration 1 has no `down`: add it")
  expect(() => define(3)).toThrow("account writes version 3: use one from 1 to 2")
  expect(define(2).kind).toBe("account")
})
