/** Accounts on a model of the store: their tokens over changes, time, restarts and lost effects. */
import { Effect } from "effect"
import { array, assert, constantFrom, nat, property, record } from "fast-check"
import { describe, expect, it } from "vitest"
import { account } from "../../actors/account/actor.ts"
import type { AccountAction, AccountMessage } from "../../actors/account/protocol.ts"
import { accountTokensMax, tokenRemovalRetryMs } from "../../actors/limits.ts"
import { hash, nowMs } from "./cells.ts"
import { ownsNothing } from "./dependencies.ts"
import { Model } from "./model.ts"

const caller = { account: "alice", admin: true }
const create: AccountMessage = {
  _tag: "Create",
  caller,
  requestId: "r1",
  name: "alice",
  roles: [],
  tokenId: "t0",
  tokenHash: hash("t0")
}
const authenticate = (id: string): AccountMessage => ({ _tag: "Authenticate", tokenHash: hash(id) })

/** The tokens whose records each waiting action removes; none waits afterwards. */
const removedTokens = (actions: Array<AccountAction>) =>
  actions.splice(0).flatMap((action) => action._tag === "RemoveTokenRecords" ? [action.tokens] : [])

describe("an account", () => {
  it("knows exactly its valid tokens in any interleaving of changes, time and restarts", () => {
    const does = constantFrom("add", "expiring", "remove", "all", "restart", "wait")
    const commands = array(record({ does, token: nat(20) }), { maxLength: 60 })
    assert(
      property(commands, (sequence) => {
        const actor = new Model(account(ownsNothing(() => Effect.void)))
        actor.send(create, nowMs)
        let atMs = nowMs
        let tokens = new Map([["t0", Number.POSITIVE_INFINITY]])
        // Each token has a new id: one that has expired or was revoked is not reused.
        const expired = new Set<string>()
        for (const { does, token } of sequence) {
          const tokenId = `t${token}`
          if (does === "restart") actor.restart()
          else if (does === "wait") atMs += 1000
          else if (does === "remove") {
            actor.send({ _tag: "RemoveToken", caller, tokenId }, atMs)
            if (tokens.delete(tokenId)) expired.add(tokenId)
          } else if (does === "all") {
            actor.send({ _tag: "RemoveTokens", caller }, atMs)
            for (const id of tokens.keys()) expired.add(id)
            tokens = new Map()
          } else if (!tokens.has(tokenId) && !expired.has(tokenId)) {
            const expiresAtMs = does === "expiring" ? atMs + 1500 : undefined
            actor.send({
              _tag: "AddToken",
              caller,
              tokenId,
              tokenHash: hash(tokenId),
              ...expiresAtMs === undefined ? {} : { expiresAtMs }
            }, atMs)
            if (tokens.size < accountTokensMax) {
              tokens.set(tokenId, expiresAtMs ?? Number.POSITIVE_INFINITY)
            }
          }
          actor.fireTimer(atMs)
          // Some effects are lost; the others come to their end.
          if (token % 3 === 0) actor.actions = []
          for (const gone of removedTokens(actor.actions)) {
            actor.send({ _tag: "TokenRecordsRemoved", tokenIds: gone.map(({ id }) => id) }, atMs)
          }
          for (const [id, expiresAtMs] of tokens) if (atMs >= expiresAtMs) expired.add(id)
          for (const id of expired) tokens.delete(id)
          for (let n = 0; n <= 20; n++) {
            const reply = actor.send(authenticate(`t${n}`), atMs)
            expect(reply).toMatchObject(
              tokens.has(`t${n}`) ? { account: "alice" } : { reason: "Unauthenticated" }
            )
          }
        }
        // A timer is set for as long as there is a token that will expire, and no longer.
        const isExpiring = [...tokens.values()].some((ms) => ms < Number.POSITIVE_INFINITY)
        if (isExpiring) expect(actor.timerAtMs).not.toBeNull()
        const laterMs = atMs + 2 * tokenRemovalRetryMs
        actor.fireTimer(laterMs)
        for (const gone of removedTokens(actor.actions)) {
          actor.send({ _tag: "TokenRecordsRemoved", tokenIds: gone.map(({ id }) => id) }, laterMs)
        }
        expect(actor.timerAtMs).toBeNull()
      })
    )
  })
})
