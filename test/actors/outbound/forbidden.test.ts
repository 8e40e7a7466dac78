/** Nothing reaches a listener at a forbidden address (protocol §5, security checklist 1 to 5). */
import { Effect } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import type { Reach } from "../../../actors/outbound/protocol.ts"
import { nameServer } from "./nameserver.ts"
import { answering, cause, client, closedPort, guarded, patient, receiver } from "./rig.ts"
import { spellings } from "./spellings.ts"

const notAllowed = {
  _tag: "PermanentFailure",
  problem: "the address is not allowed: it is not public, and OUTBOUND_ALLOW does not permit it"
}

const portNotAllowed = "the port is not allowed: it is one of another protocol, and " +
  "OUTBOUND_ALLOW does not permit the address"

describe("a literal or local name", () => {
  it.each(spellings)("%s is refused by post and get", async (host) => {
    const { hits, port } = await guarded()
    const { get, post } = await client({ allow: [] })
    expect(await post(`http://${host}:${port}/`)).toEqual(notAllowed)
    expect(await post(`https://${host}:${port}/`)).toEqual(notAllowed)
    expect(await get(`http://${host}:${port}/`)).toEqual(notAllowed)
    expect(hits()).toBe(0)
  })

  it("says the same whether or not anything listens", async () => {
    const { post } = await client({ allow: [] })
    expect(await post(`http://127.0.0.1:${await closedPort()}/`)).toEqual(notAllowed)
  })
})

describe("a redirect", () => {
  it.each([307, 308])("%d to a forbidden address is refused at that hop", async (code) => {
    const { hits, port } = await guarded()
    // 127.0.0.2 is allowed, the loopback's other addresses are not.
    const at = await receiver((_, response) => {
      response.writeHead(code, { location: `http://127.0.0.1:${port}/` }).end()
    }, "127.0.0.2")
    const { get, post } = await client({ allow: ["127.0.0.2"], limits: patient })
    expect(await post(at.uri)).toEqual(notAllowed)
    expect(await get(at.uri)).toEqual(notAllowed)
    expect(at.came).toHaveLength(2)
    expect(hits()).toBe(0)
  })

  it.each(spellings)("to %s is refused at that hop", async (host) => {
    const { hits, port } = await guarded()
    const location = new URL(`http://${host}:${port}/`).href
    const at = await receiver((_, response) => {
      response.writeHead(307, { location }).end()
    }, "127.0.0.2")
    const { get, post } = await client({ allow: ["127.0.0.2"], limits: patient })
    expect(await post(at.uri)).toEqual(notAllowed)
    expect(await get(at.uri)).toEqual(notAllowed)
    expect(at.came).toHaveLength(2)
    expect(hits()).toBe(0)
  })

  it("to a name with a forbidden address is refused at that hop", async () => {
    const { hits, port } = await guarded()
    const dns = await nameServer((_, type) => type === "A" ? ["127.0.0.1"] : [])
    const at = await receiver((_, response) => {
      response.writeHead(307, { location: `http://inner.test:${port}/` }).end()
    }, "127.0.0.2")
    const { post } = await client({
      allow: ["127.0.0.2"],
      dnsServers: [dns.address],
      limits: patient
    })
    expect(await post(at.uri)).toEqual(notAllowed)
    expect(hits()).toBe(0)
  })
})

/**
 * Has connections to a public address arrive at this machine, since no test reaches another one.
 * What the client checks is before that.
 */
const connectToLoopback = (address: string): void => {
  const { connect } = Socket.prototype
  const spy = vi.spyOn(Socket.prototype, "connect")
  spy.mockImplementation(function(this: Socket, ...args: ReadonlyArray<unknown>) {
    // What node:net passes on: the options, and no listener.
    const [[options]] = args as unknown as [[{ host?: string }]]
    if (options.host === address) options.host = "127.0.0.1"
    return Reflect.apply(connect, this, args)
  })
  onTestFinished(() => spy.mockRestore())
}

describe("a request that may reach public addresses only", () => {
  const open = async () => {
    const dns = await nameServer((_, type) => type === "A" ? ["127.0.0.1"] : [])
    const { outbound } = await client({ dnsServers: [dns.address], limits: patient })
    const request = { cause, headers: {}, bytesMax: 1_000, body: "<item/>" }
    return (uri: string, reach: Reach) =>
      Promise.all(
        [outbound.get, outbound.head, outbound.post].map((make) =>
          Effect.runPromise<unknown, never>(make({ ...request, uri, reach }))
        )
      )
  }
  const refused = [notAllowed, notAllowed, notAllowed]
  const hosts = ["127.0.0.1", "localhost", "inner.test"]

  it.each(hosts)("reaches no %s, though the operator allows it", async (host) => {
    const make = await open()
    const { hits, port } = await guarded()
    expect(await make(`http://${host}:${port}/`, "public")).toEqual(refused)
    expect(hits()).toBe(0)
  })

  it.each(hosts)("is not redirected to %s, though the operator allows it", async (host) => {
    const make = await open()
    const { hits, port } = await guarded()
    const at = await receiver((_, response) => {
      response.writeHead(307, { location: `http://${host}:${port}/` }).end()
    })
    const address = "93.184.216.34"
    connectToLoopback(address)
    const uri = `http://${address}:${at.port}/`
    expect(await make(uri, "public")).toEqual(refused)
    expect([at.came.length, hits()]).toEqual([3, 0])
    await make(uri, "allowed")
    expect([at.came.length, hits()]).toEqual([6, 3])
  })

  it("uses no connection that another request has left open", async () => {
    const make = await open()
    const at = await answering(204)
    await make(at.uri, "allowed")
    expect(at.came).toHaveLength(3)
    expect(await make(at.uri, "public")).toEqual(refused)
    expect(at.came).toHaveLength(3)
  })
})

describe("a name", () => {
  const addresses = [
    "127.0.0.1",
    "10.0.0.1",
    "169.254.169.254",
    "0.0.0.0",
    "::1",
    "::ffff:7f00:1",
    "64:ff9b::7f00:1",
    "fd00:ec2::254"
  ]
  it.each(addresses)("that leads to %s is refused", async (address) => {
    const { hits, port } = await guarded()
    const dns = await nameServer((_, type) =>
      address.includes(":") === (type === "AAAA") ? [address] : []
    )
    const { get, post } = await client({ allow: [], dnsServers: [dns.address], limits: patient })
    expect(await post(`http://inner.test:${port}/`)).toEqual(notAllowed)
    expect(await get(`http://inner.test.:${port}/`)).toEqual(notAllowed)
    expect(hits()).toBe(0)
  })

  it("of the hosts file is judged too, and followed when it is allowed", async () => {
    const folder = mkdtempSync(join(tmpdir(), "restante-hosts-"))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const hostsFile = join(folder, "hosts")
    writeFileSync(hostsFile, "# names\n127.0.0.1\tInner.test other.test # here\nnonsense x\n")
    const at = await answering(204)
    const strict = await client({ allow: [], hostsFile })
    expect(await strict.post(`http://inner.test:${at.port}/`)).toEqual(notAllowed)
    expect(at.came).toEqual([])
    const open = await client({ hostsFile })
    expect(await open.post(`http://other.test:${at.port}/`)).toMatchObject({ _tag: "Delivered" })
  })

  it("that answers allowed and forbidden addresses leads to the allowed ones", async () => {
    const { hits, port } = await guarded()
    const dns = await nameServer((_, type) =>
      type === "A" ? ["127.0.0.1", "127.0.0.5", "10.9.9.9"] : ["::1"]
    )
    const { post } = await client({
      allow: ["127.0.0.5"],
      dnsServers: [dns.address],
      limits: patient
    })
    expect(await post(`http://mixed.test:${port}/`)).toMatchObject({ _tag: "Delivered" })
    expect(hits()).toBe(1)
  })
})

describe("a URI", () => {
  const refusals: ReadonlyArray<readonly [uri: string, problem: string]> = [
    ["ftp://example.com/", "the URI is neither http nor https"],
    ["file:///etc/passwd", "the URI is neither http nor https"],
    ["data:text/plain,x", "the URI is neither http nor https"],
    ["unix:/run/socket", "the URI is neither http nor https"],
    ["http://user@example.com/", "the URI has credentials"],
    ["http://user:secret@example.com/", "the URI has credentials"],
    ["http://:secret@example.com/", "the URI has credentials"],
    ["http://", "the URI is not valid"],
    ["/relative", "the URI is not valid"],
    ["http://[fe80::1%25eth0]/", "the URI is not valid"],
    ["http://127.0.0.1.5/", "the URI is not valid"],
    ["http://256.256.256.256/", "the URI is not valid"],
    ["http://exa mple.com/", "the URI is not valid"],
    [`http://example.com/${"x".repeat(8_192)}`, "the URI is too long"],
    ["http://example.com:25/", portNotAllowed],
    ["http://8.8.8.8:22/", portNotAllowed],
    ["http://example.com:6667/", portNotAllowed],
    ["https://example.com:0/", "the port is not valid"]
  ]
  it("asks any port of an address that the operator allows", async () => {
    const { post } = await client({ allow: ["127.0.0.0/8"] })
    expect(await post("http://127.0.0.1:1/")).toMatchObject({ _tag: "RetryableFailure" })
    expect(await post("http://localhost:9/")).toMatchObject({ _tag: "RetryableFailure" })
    expect(await post("http://127.0.0.1:0/")).toMatchObject({ _tag: "PermanentFailure" })
  })

  it.each(refusals)("%s is refused", async (uri, problem) => {
    const { get, post } = await client()
    expect(await post(uri)).toEqual({ _tag: "PermanentFailure", problem })
    expect(await get(uri)).toEqual({ _tag: "PermanentFailure", problem })
  })
})
