/** The operator's token over revocations and starts of nodes: it works for Basic and Bearer. */
import { Effect } from "effect"
import { array, assert, asyncProperty, constantFrom } from "fast-check"
import { describe, expect, it } from "vitest"
import { account } from "../../actors/account/actor.ts"
import { accountKind } from "../../actors/schemas.ts"
import { type AccountMessage, tokenIdsTable, tokenKey,
  tokensTable } from "../../actors/account/protocol.ts"
import { auditKind } from "../../actors/audit/index.ts"
import { tokenRemovalRetryMs } from "../../actors/limits.ts"
import { secretHash } from "../../http/auth/credentials/index.ts"
import type { Service } from "../../http/pipeline/index.ts"
import { bootstrap } from "../../http/resources/accounts/bootstrap.ts"
import { type Address, address, type RecordChange } from "../../runtime/index.ts"
import { nowMs } from "./cells.ts"
import { noPeers, ownsNothing } from "./dependencies.ts"
import { Model } from "./model.ts"

const steps = ["write", "reply", "wait", "crash", "nothing"] as const

type Step = typeof steps[number]

/** The account `admin`, the records of its tokens, and removals of records that the test ends. */
class World {
  readonly records = new Map<string, string>()
  private readonly behavior = account(ownsNothing((changes) => this.write(changes)))
  private readonly actor = new Model(this.behavior)
  /** Reports of removals that the account has not received. */
  private reports: Array<AccountMessage> = []
  private atMs = nowMs
  private steps: Array<Step> = []

  private write(changes: ReadonlyArray<RecordChange>): Effect.Effect<void> {
    return Effect.sync(() => {
      const keys = changes.map(({ key, table }) => `${table}/${key}`)
      expect(new Set(keys).size).toBe(keys.length)
      for (const { key, table, value } of changes) {
        if (value === null) this.records.delete(`${table}/${key}`)
        else this.records.set(`${table}/${key}`, value)
      }
    })
  }

  private async performNext(): Promise<void> {
    const action = this.actor.actions.shift()
    if (action === undefined) return
    const self = address(accountKind, "admin")
    const report = await Effect.runPromise(this.behavior.perform(action, self, noPeers))
    if (report !== undefined) this.reports.push(report)
  }

  private replyNext(): void {
    const report = this.reports.shift()
    if (report !== undefined) this.actor.send(report, this.atMs)
  }

  /** No removal outlasts the time after which it is repeated. */
  private async wait(): Promise<void> {
    while (this.actor.actions.length > 0) await this.performNext()
    while (this.reports.length > 0) this.replyNext()
    this.atMs += tokenRemovalRetryMs
    this.actor.fireTimer(this.atMs)
  }

  /** Waits until nothing is under way. */
  async settle(): Promise<void> {
    for (let round = 0; round < 5; round++) await this.wait()
    expect(this.actor.timerAtMs).toBeNull()
  }

  /** What happens before the next call of a start. */
  private async step(): Promise<void> {
    const step = this.steps.shift()
    if (step === "write") await this.performNext()
    else if (step === "reply") this.replyNext()
    else if (step === "wait") await this.wait()
    else if (step === "crash") {
      this.actor.restart()
      this.reports = []
    }
    this.actor.fireTimer(this.atMs)
  }

  async run(steps: ReadonlyArray<Step>): Promise<void> {
    this.steps = [...steps]
    while (this.steps.length > 0) await this.step()
  }

  /** A node starts with this token; the steps happen between its calls. */
  async start(adminToken: string, between: ReadonlyArray<Step>): Promise<void> {
    this.steps = [...between]
    const after = <A>(call: () => A) =>
      Effect.andThen(Effect.promise(() => this.step()), Effect.sync(call))
    // The bootstrap uses these calls only; the audit log takes every entry.
    const service = {
      records: {
        get: (table: string, key: string) => after(() => this.records.get(`${table}/${key}`)),
        write: (changes: ReadonlyArray<RecordChange>) =>
          Effect.andThen(Effect.promise(() => this.step()), this.write(changes))
      },
      system: {
        ask: ({ kind }: Address, message: AccountMessage) =>
          kind === auditKind
            ? Effect.succeed({ _tag: "Recorded", n: 1 })
            : after(() => this.actor.send(message, this.atMs))
      }
    } as unknown as Service
    await Effect.runPromise(bootstrap(service, adminToken))
    await this.run(this.steps)
  }

  revoke(): void {
    const caller = { account: "admin", admin: true }
    this.actor.send({ _tag: "RemoveToken", caller, tokenId: "operator" }, this.atMs)
  }

  authenticate(tokenHash: string): unknown {
    return this.actor.send({ _tag: "Authenticate", tokenHash }, this.atMs)
  }
}

const recordsOf = (token: string) => ({
  [`${tokensTable}/${secretHash(token)}`]: "admin",
  [`${tokenIdsTable}/${tokenKey("admin", "operator")}`]: secretHash(token)
})

const order = array(constantFrom(...steps), { maxLength: 10 })

/** A world whose token was revoked before a start with the same token. */
const restartedAfterRevocation = async (during: ReadonlyArray<Step>): Promise<World> => {
  const world = new World()
  await world.start("same", [])
  world.revoke()
  await world.start("same", during)
  return world
}

describe("the operator's token", () => {
  it.each(["same", "other"])("has its records when a start has ended, %s token", async (token) => {
    await assert(
      asyncProperty(order, order, async (before, between) => {
        const world = await restartedAfterRevocation(before)
        await world.start(token, between)
        await world.settle()
        expect(world.authenticate(secretHash(token))).toMatchObject({ account: "admin" })
        expect(world.records.get(`${tokensTable}/${secretHash(token)}`)).toBe("admin")
        // After two changes at once, the second record may name the former token until a start.
        if (token === "same") expect(Object.fromEntries(world.records)).toEqual(recordsOf(token))
      }),
      { numRuns: 500 }
    )
  })

  it("has no records when it was revoked again", async () => {
    await assert(
      asyncProperty(order, order, async (before, after) => {
        const world = await restartedAfterRevocation(before)
        await world.settle()
        world.revoke()
        await world.run(after)
        await world.settle()
        expect(world.authenticate(secretHash("same"))).toMatchObject({ reason: "Unauthenticated" })
        expect(Object.fromEntries(world.records)).toEqual({})
      }),
      { numRuns: 500 }
    )
  })
})
