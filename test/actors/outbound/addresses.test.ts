/** Which addresses may be reached (protocol §5). */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { addressRules, parsePrefix } from "../../../actors/outbound/destination.ts"

const strict = addressRules([])

const forbidden = [
  "0.0.0.0",
  "0.1.2.3",
  "10.0.0.1",
  "100.64.0.1",
  "100.100.100.200",
  "100.127.255.255",
  "127.0.0.1",
  "127.255.255.254",
  "168.63.129.16",
  "169.254.0.1",
  "169.254.169.254",
  "172.16.0.1",
  "172.31.255.255",
  "192.0.0.1",
  "192.0.0.192",
  "192.0.2.1",
  "192.88.99.1",
  "192.168.1.1",
  "198.18.0.1",
  "198.19.255.255",
  "198.51.100.1",
  "203.0.113.1",
  "224.0.0.1",
  "239.255.255.255",
  "240.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "::7f00:1",
  "::8.8.8.8",
  "::ffff:127.0.0.1",
  "::ffff:0a00:1",
  "::ffff:0:8.8.8.8",
  "64:ff9b::7f00:1",
  "64:ff9b::169.254.169.254",
  "64:ff9b:1::1",
  "100::1",
  "2001::1",
  "2001:0:4136:e378:8000:63bf:3fff:fdd2",
  "2001:10::1",
  "2001:db8::1",
  "2002:7f00:1::1",
  "2002:c0a8:101::",
  "2600:1f00::5efe:7f00:1",
  "2600:1f00::200:5efe:a00:1",
  "3fff::1",
  "5f00::1",
  "fc00::1",
  "fd00:ec2::254",
  "fe80::1",
  "febf::1",
  "fec0::1",
  "ff02::1"
]

const permitted = [
  "1.1.1.1",
  "8.8.8.8",
  "100.63.255.255",
  "100.128.0.0",
  "172.15.255.255",
  "172.32.0.0",
  "192.0.1.1",
  "198.17.255.255",
  "198.20.0.0",
  "223.255.255.255",
  "::ffff:8.8.8.8",
  "64:ff9b::8.8.8.8",
  "2002:808:808::1",
  "2001:4860:4860::8888",
  "2606:4700::1111",
  "2600:1f00::5efe:808:808"
]

describe("without anything allowed", () => {
  it.each(forbidden)("%s is forbidden", (address) => {
    expect(strict.permits(address)).toBe(false)
  })
  it.each(permitted)("%s is permitted", (address) => {
    expect(strict.permits(address)).toBe(true)
  })
  it.each(["", "localhost", "1.1.1", "01.1.1.1", "[::1]", "fe80::1%eth0", "8.8.8.8:80"])(
    "%j is no address",
    (text) => expect(strict.permits(text)).toBe(false)
  )
})

describe("with prefixes allowed", () => {
  it("an IPv4 prefix allows its addresses and their IPv6 forms, and no others", () => {
    const rules = addressRules(["127.0.0.0/8", "10.1.2.3"])
    const now = ["127.0.0.1", "10.1.2.3", "::ffff:127.0.0.1", "::127.0.0.1", "2002:7f00:1::"]
    for (const address of [...now, "64:ff9b::a01:203"]) {
      expect([address, rules.permits(address)]).toEqual([address, true])
    }
    for (const address of ["10.1.2.4", "::1", "64:ff9b::a01:204", "169.254.169.254", "::"]) {
      expect([address, rules.permits(address)]).toEqual([address, false])
    }
  })

  it("an IPv6 prefix allows its addresses", () => {
    const rules = addressRules(["fd00:1::/32", "::1"])
    expect(rules.permits("fd00:1::5")).toBe(true)
    expect(rules.permits("::1")).toBe(true)
    expect(rules.permits("fd00:2::5")).toBe(false)
    expect(rules.permits("127.0.0.1")).toBe(false)
  })

  it("an invalid prefix is a defect", () => {
    for (const text of ["", "localhost", "10.0.0.0/33", "10.0.0/8", "1.2.3.4/", "::/129"]) {
      expect(parsePrefix(text)).toBeUndefined()
      expect(() => addressRules([text])).toThrow(/not an IP prefix/)
    }
  })
})

it("judges every IPv4 address like its mapped, 6to4 and NAT64 forms", () => {
  const octet = fc.nat(255)
  fc.assert(fc.property(octet, octet, octet, octet, (a, b, c, d) => {
    const hex = [a, b, c, d].map((n) => n.toString(16).padStart(2, "0"))
    const tail = `${hex[0]}${hex[1]}:${hex[2]}${hex[3]}`
    const plain = strict.permits(`${a}.${b}.${c}.${d}`)
    for (const form of [`::ffff:${tail}`, `64:ff9b::${tail}`, `2002:${tail}::1`]) {
      expect(strict.permits(form)).toBe(plain)
    }
    expect(strict.permits(`::${tail}`)).toBe(false)
  }))
})
