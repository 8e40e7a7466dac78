/** What a removed account owned is deleted, whatever is lost, late or repeated meanwhile. */
import { Effect } from "effect"
import { array, assert, asyncProperty, constantFrom, nat, record } from "fast-check"
import { describe, expect, it } from "vitest"
import { account } from "../../actors/account/actor.ts"
import { accountKind } from "../../actors/schemas.ts"
import { ownedText } from "../../actors/account/owned-removal.ts"
import type { AccountAction, AccountMessage, AccountReply,
  AccountState } from "../../actors/account/protocol.ts"
import { ownedPage, ownedRemovalRetryMs, ownedSettledMs } from "../../actors/limits.ts"
import { cursorOf } from "../../actors/record-keys.ts"
import { type Address, address, AskTimeout, type Peers } from "../../runtime/index.ts"
import { hash, nowMs } from "./cells.ts"
import { Model } from "./model.ts"

const admin = { account: "admin", admin: true }

const tables = {
  notification: "outgoing",
  mailbox: "mailboxes-by-owner",
  cabinet: "cabinets-by-owner",
  session: "sessions-by-owner",
  content: "content-listing"
} as const

type Kind = keyof typeof tables

const kinds = Object.keys(tables) as ReadonlyArray<Kind>

const keyOfEntry = (kind: Kind, owner: string, id: string): string =>
  kind === "content"
    ? `account=${owner}/${cursorOf(nowMs, id)}`
    : kind === "mailbox" || kind === "session"
    ? `${owner}/${id}`
    : `${owner}/${cursorOf(nowMs, id)}`

/** A store of listings and resources, and the actor of the account `alice`. */
class World {
  /** The owner of each resource, by `<kind>/<id>`; null after its deletion. */
  readonly owners = new Map<string, string | null>()
  /** Resources whose actors do not answer. */
  readonly unavailable = new Set<string>()
  readonly records = new Map<string, string>()
  /** The contents that the ledger counts, and how often it is unavailable to them. */
  readonly counted = new Set<string>()
  countsLost = 0
  atMs = nowMs
  readonly actor: Model<AccountState, AccountMessage, AccountReply, AccountAction>
  private readonly behavior = account({
    records: {
      range: (table, { after = "", limit, prefix = "" }) =>
        Effect.sync(() =>
          [...this.records].map(([key, value]) => ({ key, value }))
            .filter(({ key }) => key.startsWith(`${table}/${prefix}`))
            .map(({ key, value }) => ({ key: key.slice(table.length + 1), value }))
            .filter(({ key }) => key > after)
            .toSorted((one, other) => one.key < other.key ? -1 : 1)
            .slice(0, limit)
        ),
      write: (changes) =>
        Effect.sync(() => {
          for (const { key, table } of changes) this.records.delete(`${table}/${key}`)
        })
    },
    usage: {
      entry: (id) =>
        Effect.sync(() =>
          this.counted.has(id) ? { publishedAtMs: nowMs, reservations: [] } : undefined
        )
    }
  })

  constructor() {
    this.actor = new Model(this.behavior)
    this.actor.send({ _tag: "Admit", name: "alice" }, this.atMs)
  }

  list(kind: Kind, owner: string, id: string): void {
    this.records.set(`${tables[kind]}/${keyOfEntry(kind, owner, id)}`, "")
    // The request had a key, and was never repeated.
    if (kind === "notification") this.records.set(`outgoing-keys/${owner}/${id}`, "")
  }

  /** A request creates a resource: first its entry, and then the resource. */
  create(kind: Kind, owner: string, id: string): void {
    this.list(kind, owner, id)
    if (!this.owners.has(`${kind}/${id}`)) this.owners.set(`${kind}/${id}`, owner)
  }

  private readonly peers: Peers = {
    ask: (to: Address, message: object) =>
      Effect.suspend(() => {
        const name = `${to.kind}/${to.id}`
        if (this.unavailable.has(name)) {
          return Effect.fail(new AskTimeout({ key: name, deadlineMs: 1 }))
        }
        const owner = this.owners.get(name)
        const isWithdrawal = "_tag" in message && message._tag === "Withdraw"
        if (isWithdrawal && this.countsLost-- <= 0) this.counted.delete(to.id)
        const reason = owner === "alice" || isWithdrawal
          ? undefined
          : owner === undefined
          ? "NotFound"
          : owner === null
          ? "Gone"
          : "Forbidden"
        if (reason !== undefined) return Effect.succeed({ _tag: "Refused", reason })
        this.owners.set(name, null)
        return Effect.succeed({ _tag: "Done" })
      }),
    read: () => Effect.succeed([])
  }

  /** Performs what is asked for; its result may be lost. */
  async perform(isLost = false): Promise<void> {
    const action = this.actor.actions.shift()
    if (action === undefined) return
    const self = address(accountKind, "alice")
    const result = await Effect.runPromise(this.behavior.perform(action, self, this.peers))
    if (result !== undefined && !isLost) this.actor.send(result, this.atMs)
  }

  async step(does: typeof steps[number]): Promise<void> {
    this.actor.fireTimer(this.atMs)
    if (does === "perform") await this.perform()
    else if (does === "lose") await this.perform(true)
    else if (does === "crash") this.actor.restart()
    else this.atMs += ownedRemovalRetryMs
  }

  /** Nothing is lost any more. */
  async finish(): Promise<void> {
    this.unavailable.clear()
    for (let step = 0; this.actor.timerAtMs !== null; step++) {
      expect(step).toBeLessThan(1000)
      this.atMs += ownedRemovalRetryMs
      this.actor.fireTimer(this.atMs)
      while (this.actor.actions.length > 0) await this.perform()
    }
  }

  /** The entries and resources of an account that are left. */
  leftOf(owner: string): ReadonlyArray<string> {
    return [
      ...[...this.records.keys()].filter((key) =>
        key.includes(`/${owner}/`) || key.includes(`=${owner}/`) || key.includes(`/${owner}.`)
      ),
      ...[...this.owners].filter(([, of]) => of === owner).map(([name]) => name)
    ]
  }
}

/** A removal that says that everything is deleted. */
const removeAll = { _tag: "Remove", caller: admin, name: "alice" } as const

const steps = ["perform", "perform", "lose", "crash", "wait"] as const

describe("a removed account", () => {
  it("deletes all that it owned, and nothing of others, over any crashes and losses", async () => {
    const resources = array(record({ kind: constantFrom(...kinds), id: nat(300) }), {
      maxLength: 2 * ownedPage
    })
    await assert(
      asyncProperty(
        resources,
        resources,
        array(constantFrom(...steps), { maxLength: 30 }),
        async (own, late, sequence) => {
          const world = new World()
          for (const { id, kind } of own) world.create(kind, "alice", `a${id}`)
          for (const { id, kind } of own) world.create(kind, "bob", `b${id}`)
          // A name of her list is another account's mailbox; two actors do not answer for a while.
          world.list("mailbox", "alice", "b0")
          for (const { id, kind } of own.slice(0, 2)) world.unavailable.add(`${kind}/a${id}`)
          world.actor.send(removeAll, world.atMs)
          for (const does of sequence) await world.step(does)
          // A request was under way.
          const isUnderWay = world.atMs < nowMs + ownedSettledMs
          if (isUnderWay) { for (const { id, kind } of late) world.create(kind, "alice", `c${id}`) }
          const others = world.leftOf("bob")
          await world.finish()
          expect(world.leftOf("alice")).toEqual([])
          expect(world.leftOf("bob")).toEqual(others)
          const reply = world.actor.send({ _tag: "Describe", caller: admin }, world.atMs)
          expect(reply).toMatchObject({ reason: "Gone" })
          expect(ownedText({ ...startOf(world) })).toContain("are deleted")
        }
      ),
      { numRuns: 50 }
    )
  })

  it("keeps an entry whose resource a request may still create", async () => {
    const world = new World()
    world.list("mailbox", "alice", "under-way")
    world.actor.send(removeAll, world.atMs)
    for (let n = 0; n < 12; n++) await world.step("perform")
    expect(world.leftOf("alice")).toHaveLength(1)
    world.create("mailbox", "alice", "under-way")
    await world.finish()
    expect(world.owners.get("mailbox/under-way")).toBeNull()
    expect(world.leftOf("alice")).toEqual([])
  })

  it.each([0, 1, 2])(
    "ends with content that the ledger counts, and that does not exist (%i lost counts)",
    async (lost) => {
      const world = new World()
      world.list("content", "alice", "absent")
      world.counted.add("absent")
      world.countsLost = lost
      world.actor.send(removeAll, world.atMs)
      await world.finish()
      expect([world.counted.size, world.leftOf("alice")]).toEqual([0, []])
      expect(ownedText(startOf(world))).toContain("are deleted")
    }
  )

  it("keeps what requests have created since its owner had nothing", async () => {
    const world = new World()
    for (const kind of kinds) world.create(kind, "alice", "late")
    const kept = world.leftOf("alice")
    world.actor.send({ _tag: "Remove", caller: admin }, world.atMs)
    world.actor.restart()
    await world.finish()
    expect(world.leftOf("alice")).toEqual(kept)
    world.actor.send(removeAll, world.atMs)
    await world.finish()
    expect(world.leftOf("alice")).toEqual([])
  })

  it("has no token records left, whatever was lost", async () => {
    const world = new World()
    world.records.set("token-ids/alice.t1", hash("t1"))
    world.records.set(`tokens/${hash("t1")}`, "alice")
    world.actor.send(removeAll, world.atMs)
    await world.finish()
    expect([...world.records.keys()]).toEqual([])
  })
})

/** The progress in the account's record. */
const startOf = ({ actor: { state } }: World) => {
  if (state._tag !== "Removed" || state.owned === undefined) throw new Error("it is not removed")
  return state.owned
}
