/** Secrets that a person types: asked on a terminal, which does not show them. */
import { Effect, Result } from "effect"
import { PassThrough } from "node:stream"
import { describe, expect, it } from "vitest"
import { askSecret, isTerminal } from "../../deploy/secret-input.ts"

const terminal = () => {
  const input = Object.assign(new PassThrough(), { isTTY: true })
  const shown: Array<string> = []
  return { input, shown, output: { write: (text: string) => shown.push(text) } }
}

describe("a secret that is typed", () => {
  it("is read up to the line's end, and never shown", async () => {
    const { input, output, shown } = terminal()
    expect(isTerminal({ input, output })).toBe(true)
    const asked = Effect.runPromise(askSecret("Token of an admin", { input, output }))
    input.write("rst_wrong")
    // Backspace removes a character; Control-U removes the line.
    input.write("\u007f\u0015rst_rightx\u007f\r")
    expect(await asked).toBe("rst_right")
    expect(shown.join("")).toBe("Token of an admin: \n")
  })

  it.each([["Control-C", "\u0003"], ["Control-D", "\u0004"]])(
    "is none after %s",
    async (_, key) => {
      const { input, output } = terminal()
      const asked = Effect.runPromise(Effect.result(askSecret("Token", { input, output })))
      input.write(key)
      expect(Result.isFailure(await asked)).toBe(true)
    }
  )
})
