/** What a post comes to with receivers that fail in every way (protocol §1.3). */
import { describe, expect, it } from "vitest"
import { client, closedPort, quick, speaking } from "./rig.ts"

const faulted = (problem: string) => ({ _tag: "RetryableFailure", problem })

describe("a receiver that fails", () => {
  it("by not being there", async () => {
    const { post } = await client()
    expect(await post(`http://127.0.0.1:${await closedPort()}`))
      .toEqual(faulted("connection refused"))
  })

  it("by never answering", async () => {
    const { uri } = await speaking(() => undefined)
    const { post } = await client({ limits: quick })
    expect(await post(uri)).toEqual(faulted("no answer in time"))
  })

  it("by never shaking hands", async () => {
    const { uri } = await speaking(() => undefined)
    const { post } = await client({ limits: quick })
    expect(await post(uri.replace("http:", "https:"))).toEqual(faulted("could not connect in time"))
  })

  it("by dripping its head", async () => {
    const { uri } = await speaking((socket) => {
      let at = 0
      const text = `HTTP/1.1 200 OK\r\nX-Long: ${"x".repeat(1_000)}`
      const drip = setInterval(() => socket.write(text[at++] ?? "x"), 20)
      socket.once("close", () => clearInterval(drip))
    })
    const { post } = await client({ limits: quick })
    expect(await post(uri)).toEqual(faulted("no answer in time"))
  })

  it("by informational answers without end", async () => {
    const { uri } = await speaking((socket) => {
      const drip = setInterval(() => socket.write("HTTP/1.1 102 Processing\r\n\r\n"), 5)
      socket.once("close", () => clearInterval(drip))
    })
    const { post } = await client({ limits: quick })
    expect(await post(uri)).toEqual(faulted("no answer in time"))
  })

  it("by a head that is too large", async () => {
    const { post } = await client()
    const heads = [`X-A: ${"x".repeat(20_000)}\r\n`, "X-A: b\r\n".repeat(8_000)]
    for (const head of heads) {
      const { uri } = await speaking((socket) =>
        socket.once("data", () => socket.write(`HTTP/1.1 200 OK\r\n${head}\r\n`))
      )
      expect(await post(uri)).toEqual(faulted("the answer's header block is too large"))
    }
  })

  it("by closing without an answer", async () => {
    const { uri } = await speaking((socket) => socket.once("data", () => socket.end()))
    const { post } = await client()
    expect(await post(uri)).toEqual(faulted("the connection was reset"))
  })

  it("by resetting", async () => {
    const { uri } = await speaking((socket) => socket.once("data", () => socket.resetAndDestroy()))
    const { post } = await client()
    expect(await post(uri)).toEqual(faulted("the connection was reset"))
  })

  it.each([
    "SSH-2.0-OpenSSH_9\r\n",
    "HTTP/1.1 2000 OK\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
  ])("by an answer that is not HTTP: %j", async (text) => {
    const { uri } = await speaking((socket) => socket.once("data", () => socket.end(text)))
    const { post } = await client()
    expect(await post(uri)).toEqual(faulted("the answer is not valid HTTP"))
  })

  it("by asking for another protocol", async () => {
    const { uri } = await speaking((socket) =>
      socket.once(
        "data",
        () => socket.end(`HTTP/1.1 101 S\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n`)
      )
    )
    const { post } = await client()
    expect(await post(uri)).toMatchObject({ _tag: "RetryableFailure" })
  })
})
