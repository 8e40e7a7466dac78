/** Attempts have no secret that an answer repeats. */
import { expect, it } from "vitest"
import { withoutSecret } from "../../actors/attempts/index.ts"
import { recordedHeaderCharsMax } from "../../actors/limits.ts"

const answered = (text: string, isCut = false, header = "") => ({
  beganAtMs: 0,
  requestHeaders: [],
  answer: { headers: [["x", header] as const], bytes: text.length, text, ...isCut ? { isCut } : {} }
})

const textOf = (text: string, secret: string, isCut = false): string | undefined =>
  withoutSecret(answered(text, isCut), secret).answer?.text

it("hides a secret however an answer writes it", () => {
  const secret = "a&amp;b&quot;c/d"
  expect(textOf("xml a&amp;b&quot;c/d", secret)).toBe("xml …")
  expect(textOf("plain a&b\"c/d, twice a&b\"c/d", secret)).toBe("plain …, twice …")
  expect(textOf("json {\"p\":\"a&b\\\"c/d\"}", secret)).toBe("json {\"p\":\"…\"}")
  expect(textOf("uri ?p=a%26b%22c%2Fd", secret)).toBe("uri ?p=…")
  expect(textOf("nothing", secret)).toBe("nothing")
  expect(textOf("whole", "")).toBe("whole")
})

it("hides the beginning of one where the sample was cut", () => {
  expect(textOf("it is top-sec", "top-secret", true)).toBe("it is ")
  expect(textOf("it is top-sec", "top-secret")).toBe("it is top-sec")
  const long = `${"x".repeat(recordedHeaderCharsMax - 3)}top`
  const { answer } = withoutSecret(answered("", false, long), "top-secret")
  expect(answer?.headers).toEqual([["x", "x".repeat(recordedHeaderCharsMax - 3)]])
  expect(withoutSecret(answered("", false, "top"), "top-secret").answer?.headers)
    .toEqual([["x", "top"]])
})
