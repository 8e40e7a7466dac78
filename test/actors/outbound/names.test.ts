/** Names: what the servers may answer, and that only checked addresses are connected to. */
import { describe, expect, it } from "vitest"
import { parseHosts } from "../../../actors/outbound/connector.ts"
import { nameServer, type Question } from "./nameserver.ts"
import { answering, client, connectionIsFree, guarded, patient, receiver } from "./rig.ts"

const faulted = (problem: string) => ({ _tag: "RetryableFailure", problem })

const servedBy = async (question: Question, limits = {}) => {
  const dns = await nameServer(question)
  return { ...await client({ dnsServers: [dns.address], limits }), asked: dns.asked }
}

describe("a name", () => {
  it("is asked for as A and AAAA, with its name as Host", async () => {
    const { asked, post } = await servedBy((_, type) => type === "A" ? ["127.0.0.1"] : [], patient)
    const at = await answering(204)
    expect(await post(`http://one.test:${at.port}/`)).toEqual({ _tag: "Delivered", code: 204 })
    expect(asked.toSorted()).toEqual(["one.test A", "one.test AAAA"])
    expect(at.came[0]?.headers.host).toBe(`one.test:${at.port}`)
  })

  it("is reached at the next address when the first does not answer", async () => {
    const { post } = await servedBy(
      (_, type) => type === "A" ? ["127.0.0.3", "127.0.0.1"] : [],
      patient
    )
    const at = await answering(204)
    expect(await post(`http://two.test:${at.port}/`)).toMatchObject({ _tag: "Delivered" })
  })

  it("is reached by A when AAAA fails", async () => {
    for (const reply of ["SERVFAIL", "NXDOMAIN", "silence"] as const) {
      // The answer for A comes within this time; of AAAA nothing may come.
      const limits = { ...patient, nameTimeoutMs: 2_000 }
      const { post } = await servedBy((_, type) => type === "A" ? ["127.0.0.1"] : reply, limits)
      const at = await answering(204)
      expect(await post(`http://three.test:${at.port}/`)).toMatchObject({ _tag: "Delivered" })
    }
  })

  it("that is not there is a fault", async () => {
    const { post } = await servedBy(() => "NXDOMAIN", patient)
    expect(await post("http://none.test/")).toEqual(faulted("name not found"))
  })

  it("without addresses is a fault", async () => {
    const { post } = await servedBy(() => [], patient)
    expect(await post("http://empty.test/")).toEqual(faulted("the name has no address"))
  })

  it("whose server fails is a fault", async () => {
    const { post } = await servedBy(() => "SERVFAIL", patient)
    expect(await post("http://broken.test/")).toEqual(faulted("the name server failed"))
  })

  it("whose server is silent is a fault", async () => {
    const { post } = await servedBy(() => "silence")
    expect(await post("http://silent.test/")).toEqual(faulted("the name was not resolved in time"))
  })

  it("whose A fails and whose AAAA is not there is a fault", async () => {
    const { post } = await servedBy((_, type) => type === "A" ? "SERVFAIL" : [], patient)
    expect(await post("http://half.test/")).toEqual(faulted("the name server failed"))
  })

  it("of this machine needs no server", async () => {
    const { asked, post } = await servedBy(() => "NXDOMAIN", patient)
    const at = await answering(204)
    for (const host of ["localhost", "LOCALHOST.", "a.localhost"]) {
      expect(await post(`http://${host}:${at.port}/`)).toMatchObject({ _tag: "Delivered" })
    }
    expect(asked).toEqual([])
  })
})

describe("rebinding", () => {
  it("never connects to an address that was not checked", async () => {
    const { hits, port } = await guarded()
    // Each question for an A is answered otherwise: allowed, then forbidden, and so on.
    let turn = 0
    const dns = await nameServer((_, type) =>
      type === "AAAA" ? [] : [turn++ % 2 === 0 ? "127.0.0.7" : "127.0.0.1"]
    )
    const { post } = await client({
      allow: ["127.0.0.7"],
      dnsServers: [dns.address],
      limits: patient
    })
    const outcomes: Array<string> = []
    for (let n = 0; n < 6; n++) outcomes.push((await post(`http://rebind.test:${port}/`))._tag)
    expect(outcomes).toEqual(
      [
        "Delivered",
        "PermanentFailure",
        "Delivered",
        "PermanentFailure",
        "Delivered",
        "PermanentFailure"
      ]
    )
    expect(hits()).toBe(3)
  })

  it("leaves a kept connection at the address that was checked", async () => {
    let address = "127.0.0.1"
    const dns = await nameServer((_, type) => type === "AAAA" ? [] : [address])
    const at = await receiver((request, response) => {
      response.setHeader("x-local", request.socket.localAddress ?? "")
      response.writeHead(204).end()
    })
    const { post } = await client({
      allow: ["127.0.0.1"],
      dnsServers: [dns.address],
      limits: patient
    })
    expect(await post(`http://kept.test:${at.port}/`)).toMatchObject({ _tag: "Delivered" })
    address = "10.0.0.1"
    await connectionIsFree()
    expect(await post(`http://kept.test:${at.port}/`)).toMatchObject({ _tag: "Delivered" })
    expect(at.came).toHaveLength(2)
    expect(dns.asked.filter((asked) => asked.endsWith(" A"))).toHaveLength(1)
  })
})

it("reads a hosts file", () => {
  const text = "127.0.0.1 a B.test. #c\n\n::1\ta\n#1.1.1.1 d\nbad e\n1.2.3.4\n"
  expect([...parseHosts(text)]).toEqual([["a", ["127.0.0.1", "::1"]], ["b.test", ["127.0.0.1"]]])
})
