/** TLS is verified, for the host that was asked for, and nothing turns that off. */
import { createServer } from "node:tls"
import { describe, expect, it, onTestFinished } from "vitest"
import * as certificates from "./certificates.ts"
import { nameServer } from "./nameserver.ts"
import { answering, client, listening } from "./rig.ts"

const { authority, early, expired, good, key, otherHost, selfSigned } = certificates

/** A TLS server with this certificate that answers 204; what it was asked, and for which host. */
const secure = async (cert: string) => {
  const seen: Array<string> = []
  const server = createServer({ key, cert }, (socket) => {
    const { servername } = socket as { readonly servername?: string | false } // set by Node
    socket.on("error", () => undefined)
    socket.once("data", (data) => {
      seen.push(`${servername === false ? "" : servername} ${data.toString().split("\r\n", 1)[0]}`)
      socket.end("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
    })
  })
  server.on("tlsClientError", () => undefined)
  return { port: await listening(server), seen }
}

const trusting = async () => {
  const dns = await nameServer((_, type) => type === "A" ? ["127.0.0.1"] : [])
  return client({ ca: [authority], dnsServers: [dns.address] })
}

const faulted = (why: string) => ({
  _tag: "RetryableFailure",
  problem: `the certificate is not valid: ${why}`
})

describe("a server with a certificate", () => {
  it("for its name is asked by that name", async () => {
    const { port, seen } = await secure(good)
    const { post } = await trusting()
    for (const host of ["good.test", "good.test."]) {
      expect(await post(`https://${host}:${port}/a`)).toEqual({ _tag: "Delivered", code: 204 })
    }
    expect(seen).toEqual(["good.test POST /a HTTP/1.1", "good.test POST /a HTTP/1.1"])
  })

  it("for its address is asked without a name", async () => {
    const { port, seen } = await secure(good)
    const { post } = await trusting()
    expect(await post(`https://127.0.0.1:${port}/a`)).toEqual({ _tag: "Delivered", code: 204 })
    expect(seen).toEqual([" POST /a HTTP/1.1"])
  })

  const invalid = { expired, "not valid yet": early, "it is for another host": otherHost }
  it.each(Object.entries(invalid))("that is %s gets nothing", async (why, cert) => {
    const { port, seen } = await secure(cert)
    const { get, post } = await trusting()
    expect(await post(`https://good.test:${port}/`)).toEqual(faulted(why))
    expect(await get(`https://127.0.0.1:${port}/`)).toEqual(faulted(why))
    expect(seen).toEqual([])
  })

  it("that is self-signed gets nothing", async () => {
    const { port, seen } = await secure(selfSigned)
    const { post } = await trusting()
    expect(await post(`https://good.test:${port}/`)).toEqual(faulted("self-signed"))
    expect(seen).toEqual([])
  })

  it("of an unknown authority gets nothing, whatever the environment says", async () => {
    const before = process.env["NODE_TLS_REJECT_UNAUTHORIZED"]
    onTestFinished(() => {
      before === undefined
        ? delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"]
        : process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = before
    })
    process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0"
    const { port, seen } = await secure(good)
    const { post } = await client()
    expect(await post(`https://127.0.0.1:${port}/`)).toEqual(faulted("its issuer is not known"))
    expect(seen).toEqual([])
  })
})

it("a server without TLS gets nothing", async () => {
  const at = await answering(204)
  const { post } = await trusting()
  expect(await post(at.uri.replace("http:", "https:")))
    .toEqual({ _tag: "RetryableFailure", problem: "the TLS handshake failed" })
  expect(at.came).toEqual([])
})

it("a redirect from https to http is not followed", async () => {
  const target = await answering(204)
  const server = createServer({ key, cert: good }, (socket) => {
    socket.on("error", () => undefined)
    socket.once(
      "data",
      () => socket.end(`HTTP/1.1 307 T\r\nLocation: ${target.uri}\r\nContent-Length: 0\r\n\r\n`)
    )
  })
  const port = await listening(server)
  const { get, post } = await trusting()
  const refused = { _tag: "PermanentFailure", code: 307 }
  expect(await post(`https://good.test:${port}/`)).toMatchObject(refused)
  expect(await get(`https://good.test:${port}/`)).toMatchObject(refused)
  expect(target.came).toEqual([])
})
