/** The order of a record's keys is that of their UTF-8 bytes. */
import { assert, property, string } from "fast-check"
import { expect, it } from "vitest"
import { byBytes } from "../../runtime/index.ts"

it("is the order of their bytes, for any texts", () => {
  const text = string({ unit: "binary" })
  assert(
    property(text, text, (one, other) => {
      const expected = Buffer.compare(Buffer.from(one), Buffer.from(other))
      expect(Math.sign(byBytes(one, other))).toBe(expected)
    }),
    { examples: [["\u{1F600}", "\uFFFD"], ["a", "ab"], ["", ""]] }
  )
})
