/** A small name server for one test: A and AAAA over UDP (RFC 1035), TTL 0. */
import { createSocket } from "node:dgram"
import { onTestFinished } from "vitest"

/** What is answered to one question; `silence` is no answer at all. */
export type Reply = ReadonlyArray<string> | "NXDOMAIN" | "SERVFAIL" | "silence"

export type Question = (name: string, type: "A" | "AAAA") => Reply

const typeNumbers = { A: 1, AAAA: 28 }

const codes = { NXDOMAIN: 3, SERVFAIL: 2 }

/** The name of a question and where it ends. */
const readName = (message: Buffer): readonly [name: string, end: number] => {
  const labels: Array<string> = []
  let at = 12
  for (let size = message[at] ?? 0; size > 0; size = message[at] ?? 0) {
    labels.push(message.toString("latin1", at + 1, at + 1 + size))
    at += 1 + size
  }
  return [labels.join("."), at + 1]
}

const bytesOf = (address: string): Buffer => {
  if (address.includes(".")) return Buffer.from(address.split(".").map(Number))
  const [head = "", tail = ""] = address.split("::")
  const left = head === "" ? [] : head.split(":")
  const right = tail === "" ? [] : tail.split(":")
  const gap = Array.from({ length: 8 - left.length - right.length }, () => "0")
  return Buffer.from(
    [...left, ...gap, ...right].map((part) => part.padStart(4, "0")).join(""),
    "hex"
  )
}

const record = (type: number, address: string): Buffer => {
  const data = bytesOf(address)
  const head = Buffer.alloc(12)
  head.writeUInt16BE(0xc00c, 0) // the name of the question
  head.writeUInt16BE(type, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(data.length, 10)
  return Buffer.concat([head, data])
}

/** Serves until the test is over; gives its address. */
export const nameServer = async (
  question: Question
): Promise<{ readonly address: string; readonly asked: Array<string> }> => {
  const asked: Array<string> = []
  const socket = createSocket("udp4")
  socket.on("message", (message, from) => {
    const [name, end] = readName(message)
    const type = message.readUInt16BE(end) === typeNumbers.AAAA ? "AAAA" : "A"
    asked.push(`${name} ${type}`)
    const reply = question(name, type)
    if (reply === "silence") return
    const answers = typeof reply === "string" ? [] : reply
    const head = Buffer.alloc(12)
    message.copy(head, 0, 0, 2)
    head.writeUInt16BE(0x8180 | (typeof reply === "string" ? codes[reply] : 0), 2)
    head.writeUInt16BE(1, 4)
    head.writeUInt16BE(answers.length, 6)
    const records = answers.map((address) => record(typeNumbers[type], address))
    const asking = message.subarray(12, end + 4)
    socket.send(Buffer.concat([head, asking, ...records]), from.port, from.address)
  })
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve))
  onTestFinished(() => void socket.close())
  return { address: `127.0.0.1:${socket.address().port}`, asked }
}
