/** The keys that encrypt what is stored. */
import { describe, expect, it, vi } from "vitest"
import { KeyStream } from "../../actors/key-stream.ts"
import { Keyring, newKey, parseKeys, type SealedPlace, sealingKeyId } from "../../actors/keyring.ts"
import { openedCharsMax } from "../../actors/limits.ts"

const place: SealedPlace = { purpose: "message password", of: "mailbox/alice" }

const ringOf = (...keys: ReadonlyArray<string>): Keyring => {
  const ring = parseKeys(keys.join("\n"))
  if (typeof ring === "string") throw new Error(ring)
  return ring
}

describe("a sealed text", () => {
  const key = newKey()
  const ring = ringOf(key)
  const sealed = ring.seal(place, "open sesame ü")

  it("opens with its key, for its own place", () => {
    expect(ringOf(key).open(place, sealed)).toBe("open sesame ü")
    expect(ring.open(place, ring.seal(place, ""))).toBe("")
  })

  it("names its key and nothing else", () => {
    expect(sealingKeyId(sealed)).toBe(ring.currentId)
    expect(sealingKeyId("open sesame")).toBeUndefined()
    expect(sealed).toMatch(/^s2\.[A-Za-z0-9_-]{8}\.[A-Za-z0-9_-]+$/)
    expect(sealed).not.toBe(ring.seal(place, "open sesame ü"))
  })

  it.each<[string, SealedPlace]>([
    ["another record", { ...place, of: "mailbox/bob" }],
    ["another purpose", { ...place, purpose: "signing secret" }]
  ])("does not open for %s", (_, other) => {
    expect(ring.open(other, sealed)).toBeUndefined()
    // Nor from memory, once it has been opened.
    expect(ring.open(place, sealed)).toBe("open sesame ü")
    expect(ring.open(other, sealed)).toBeUndefined()
    expect(ring.open(place, sealed)).toBe("open sesame ü")
  })

  it("opens from memory without being decrypted again", () => {
    const decrypt = vi.spyOn(KeyStream.prototype, "decrypt")
    try {
      const [one, other] = [ring.seal(place, "one"), ring.seal(place, "x".repeat(openedCharsMax))]
      for (const [text, times] of [[one, 1], [other, 2]] as const) {
        decrypt.mockClear()
        expect(ring.open(place, text)).toBe(ring.open({ ...place }, text))
        expect(decrypt).toHaveBeenCalledTimes(times)
      }
    } finally {
      decrypt.mockRestore()
    }
  })

  it("does not open with another key, changed, or cut", () => {
    expect(ringOf(newKey()).open(place, sealed)).toBeUndefined()
    const at = sealed.length - 4
    const changed = sealed.slice(0, at) + (sealed[at] === "A" ? "B" : "A") + sealed.slice(at + 1)
    expect(ring.open(place, changed)).toBeUndefined()
    for (const length of [0, 2, 12, 30]) {
      expect(ring.open(place, sealed.slice(0, length))).toBeUndefined()
    }
  })

  it("opens with an earlier key, and is sealed by the first one", () => {
    const next = newKey()
    const rotated = ringOf(next, key)
    expect(rotated.ids).toEqual([ringOf(next).currentId, ring.currentId])
    expect(rotated.open(place, sealed)).toBe("open sesame ü")
    expect(sealingKeyId(rotated.seal(place, "x"))).toBe(ringOf(next).currentId)
  })
})

describe("derived keys", () => {
  it("differ by purpose and by key, and are the same for the same key", () => {
    const [one, two] = [newKey(), newKey()]
    const both = ringOf(one, two).keysFor("envelopes between nodes").map((key) =>
      key.toString("hex")
    )
    expect(both).toHaveLength(2)
    expect(ringOf(two).keysFor("envelopes between nodes")[0]?.toString("hex")).toBe(both[1])
    expect(ringOf(one).keysFor("service key")[0]?.toString("hex")).not.toBe(both[0])
    expect(new Set(both).size).toBe(2)
    expect(both[0]).toHaveLength(64)
  })
})

describe("a key file", () => {
  const bytes = Buffer.alloc(32, 0xfb)

  it("has keys as base64, base64url or digits, and comments", () => {
    const id = ringOf(bytes.toString("base64")).currentId
    expect(ringOf("# a key", "", ` ${bytes.toString("base64url")}\r`).currentId).toBe(id)
    expect(ringOf(bytes.toString("hex")).currentId).toBe(id)
  })

  it.each([
    ["no key", "# nothing\n\n", "it has no key"],
    ["a short key", newKey().slice(0, 40), "key number 1 does not have 32 bytes as base64"],
    ["a text", `${newKey()}\npassword`, "key number 2 does not have 32 bytes as base64"],
    ["many keys", `${newKey()}\n`.repeat(9), "it has more than 8 keys"]
  ])("with %s is refused, without a part of it in the message", (_, text, problem) => {
    expect(parseKeys(text)).toBe(problem)
  })

  it("with keys of a wrong length makes no keyring", () => {
    expect(() => new Keyring([])).toThrow(RangeError)
    expect(() => new Keyring([new Uint8Array(16)])).toThrow("16 bytes instead of 32")
  })
})
