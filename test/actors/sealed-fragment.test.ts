/** Message passwords in stored fragments of notifications. */
import { describe, expect, it } from "vitest"
import { Keyring } from "../../actors/keyring.ts"
import { encodeItem } from "../../actors/mailbox/log-item.ts"
import { openFragment, openItems, resealFragment, sealPasswordFor, wholeFragment,
  withSealedPassword } from "../../actors/sealed-fragment.ts"
import { address } from "../../runtime/index.ts"
import { testKeyring } from "./dependencies.ts"

const alice = address("mailbox", "alice")

const relay = address("notification", "n1")

const plain = "<item><description>d</description><url>u</url></item>"

const before = "<item><description>d</description><url>u</url><password a=\"1\">"

const after = "</password><x>~</x></item>"

const stored = withSealedPassword(
  before + after,
  before.length,
  sealPasswordFor(testKeyring, relay)("&lt;p\n")
)

const other = new Keyring([Buffer.alloc(32, "other")])

describe("a fragment with a password", () => {
  it("is stored without it, and read with it", () => {
    expect(stored).not.toContain("&lt;p")
    expect(openFragment(testKeyring, relay, stored)).toBe(`${before}&lt;p\n${after}`)
  })

  it("is for one record, until it is encrypted for another one", () => {
    const without = plain.replace("</item>", "<x>~</x></item>")
    expect(openFragment(testKeyring, alice, stored)).toBe(without)
    const moved = resealFragment(testKeyring, relay, alice, stored)
    expect(moved !== undefined && openFragment(testKeyring, alice, moved)).toBe(
      `${before}&lt;p\n${after}`
    )
    expect(moved !== undefined && openFragment(testKeyring, relay, moved)).toBe(without)
  })

  it("is read without the password's element if its key is missing, and not passed on", () => {
    const without = plain.replace("</item>", "<x>~</x></item>")
    expect(openFragment(other, relay, stored)).toBe(without)
    expect(resealFragment(other, relay, alice, stored)).toBeUndefined()
    expect(wholeFragment(other, relay, stored)).toBeUndefined()
  })
})

it("leaves items without a password as they are", () => {
  const id = "a".repeat(22)
  const items = [
    { n: 1, value: encodeItem(5, id, id, plain) },
    { n: 2, value: encodeItem(5, id, id, plain, { network: "192.0.2.0/24" }) }
  ]
  const opened = openItems(testKeyring, alice, items)
  expect(opened[0]).toBe(items[0])
  expect(opened[1]).toBe(items[1])
  const sealed = resealFragment(testKeyring, relay, alice, stored) ?? ""
  const [item] = openItems(testKeyring, alice, [{ n: 3, value: encodeItem(5, id, id, sealed) }])
  expect(item?.value).toBe(encodeItem(5, id, id, `${before}&lt;p\n${after}`))
})
