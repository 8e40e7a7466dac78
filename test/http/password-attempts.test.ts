/** How long attempts at message passwords wait for their turns: in virtual time. */
import { Effect } from "effect"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { passwordTurnMs, passwordWaitMs } from "../../actors/limits.ts"
import type { ThrottleMessage, ThrottleReply } from "../../actors/throttle/protocol.ts"
import { CredentialCache } from "../../http/auth/credentials/index.ts"
import { checkPassword } from "../../http/auth/index.ts"
import type { Call } from "../../http/pipeline/call.ts"
import type { HandlerFailure } from "../../http/pipeline/http-error.ts"
import type { Service } from "../../http/pipeline/service.ts"
import type { Address } from "../../runtime/index.ts"

beforeEach(() =>
  void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "Date"] })
)

afterEach(() => void vi.useRealTimers())

type Check = Extract<ThrottleMessage, { readonly _tag: "Check" }>

const room: ThrottleReply = { _tag: "Wait", waitMs: 0 }
const full: ThrottleReply = { ...room, isFull: true }

/** An attempt of a client, whose throttle replies by `reply`. */
const attemptWith = (reply: (message: Check) => ThrottleReply) => {
  const asked: Array<Check> = []
  const exchange = { isAborted: false }
  let checks = 0
  const ask = (_to: Address, message: ThrottleMessage) =>
    Effect.sync(() => {
      if (message._tag !== "Check") return room
      asked.push(message)
      return message.ends === undefined ? reply(message) : room
    })
  // The attempt uses nothing else of them.
  const service = {
    clients: {
      clientOf: () => ({ address: "192.0.2.1", network: "192.0.2.0/24", isLocal: false })
    },
    credentialCache: new CredentialCache(),
    system: { ask }
  } as unknown as Service
  const call = { exchange, identity: { _tag: "Anonymous" }, request: {} } as unknown as Call
  const ended: { failure?: HandlerFailure } = {}
  const attempt = checkPassword(service, call, {
    target: "content",
    passwordHash: "hash",
    check: Effect.sync(() => checks += 1),
    isWrong: () => false,
    isRight: () => true
  })
  const failing = Effect.map(Effect.flip(attempt), (failure) => void (ended.failure = failure))
  Effect.runFork(failing)
  return { asked, checkCount: () => checks, ended, exchange }
}

/** Lets the time of some turns pass. */
const turns = async (count: number): Promise<void> => {
  for (let n = 0; n < count; n += 1) {
    await vi.advanceTimersByTimeAsync(passwordTurnMs)
    await new Promise((resolve) => void setImmediate(resolve))
  }
}

const expectFailure = (failure: HandlerFailure | undefined): void =>
  expect(failure).toMatchObject({ _tag: "HttpError", problem: { status: 429 } })

describe("an attempt at a message password", () => {
  it("ends its wait when its client has left", async () => {
    const { asked, checkCount, ended, exchange } = attemptWith(() => full)
    await turns(3)
    expect(ended.failure).toBeUndefined()
    exchange.isAborted = true
    await turns(2)
    expectFailure(ended.failure)
    const { length } = asked
    await turns(3)
    expect([asked.length, checkCount()]).toEqual([length, 0])
  })

  it("waits for both turns no longer than half of the time for which it counts", async () => {
    const turnAtMs = Date.now() + passwordWaitMs / 2
    const { asked, checkCount, ended } = attemptWith(({ of }) =>
      of === "passwords" && Date.now() >= turnAtMs ? room : full
    )
    const allTurns = Math.ceil(passwordWaitMs / passwordTurnMs)
    await turns(allTurns - 2)
    expect(ended.failure).toBeUndefined()
    await turns(6)
    expectFailure(ended.failure)
    expect(checkCount()).toBe(0)
    // It has waited for both, and does not count any more.
    expect(new Set(asked.map(({ of }) => of))).toEqual(new Set(["passwords", "account"]))
    expect(asked.filter(({ ends }) => ends !== undefined)).toHaveLength(1)
  })
})
