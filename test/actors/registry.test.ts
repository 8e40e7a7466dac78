import { describe, expect, it } from "vitest"
import { behaviors } from "../../actors/index.ts"
import { noDependencies } from "./dependencies.ts"
import { address } from "../../runtime/index.ts"

describe("the registry of kinds", () => {
  const all = behaviors(noDependencies)
  it("has each kind once", () => {
    expect(all.map(({ kind }) => kind)).toEqual([
      "account",
      "audit",
      "background-task",
      "cabinet",
      "content",
      "idempotency",
      "mailbox",
      "notification",
      "outgoing-mailbox",
      "readiness",
      "registration",
      "session",
      "throttle"
    ])
  })
  for (const { kind, initial, table, timerMessage, encode, decode, decodeMessage } of all) {
    it(`holds a whole ${kind}`, () => {
      const self = address(kind, "one")
      const rows = Object.values(table)
      expect(Object.keys(table)).toContain(initial._tag)
      const messages = Object.keys(rows[0] ?? {}).toSorted()
      for (const row of rows) expect(Object.keys(row ?? {}).toSorted()).toEqual(messages)
      expect(decode(encode(initial, 1, self), 1, self)).toEqual(initial)
      expect(decodeMessage({ _tag: "TimerFired" })).toEqual(timerMessage)
      // A field of a later version is no reason to refuse.
      expect(decodeMessage({ _tag: "TimerFired", later: 1 })).toMatchObject(timerMessage)
      for (const bad of [null, "TimerFired", {}, { _tag: "__proto__" }]) {
        expect(() => decodeMessage(bad)).toThrow()
      }
      for (const bad of ["", "null", "{}", "{\"_tag\":\"toString\"}"]) {
        expect(() => decode(bad, 1, self)).toThrow()
      }
    })
  }
})
