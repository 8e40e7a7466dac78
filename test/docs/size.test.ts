/**
 * docs/how-to/size.md: its figures for clusters give what RESULTS.md measured, within a fifth, and
 * its rates are those of RESULTS.md.
 */
import { describe, expect, it } from "vitest"
import { textOf } from "./pages.ts"

/** The greatest error of a computed figure, as a part of the measured one. */
const errorMax = 0.2

/** The greatest error of a figure that is written as measured, for its rounding. */
const writtenErrorMax = 0.04

/** Processor time of an operation over one node, and what an ask of another node adds; in µs. */
interface Cost {
  readonly aloneUs: number
  readonly askUs: number
}

/** The average over `nodes` nodes, where each request may reach any of them. */
const averageUs = ({ aloneUs, askUs }: Cost, nodes: number): number =>
  aloneUs + askUs * (nodes - 1) / nodes

const costsOf = (operation: string, servers: string) => {
  const rows = textOf("docs/how-to/size.md").split("\n").map((line) =>
    line.split("|").map((cell) => cell.trim()).slice(1)
  )
  const row = rows.find(([first, second]) => first === operation && second === servers)
  const [nodesAlone, nodesAsk, serversAlone, serversAsk] = (row ?? []).slice(2).map(Number)
  return {
    nodes: { aloneUs: nodesAlone ?? NaN, askUs: nodesAsk ?? NaN },
    servers: { aloneUs: serversAlone ?? NaN, askUs: serversAsk ?? NaN }
  }
}

const rowPattern = /^\| processor time of a (.+?) on (.+?) over three nodes, .*?\| (.+?) +\|/gm

const measurePattern = /(\d): [^;]*?([\d.]+) µs of nodes, ([\d.]+) µs of servers/g

/** By operation and servers: the microseconds of nodes and of servers over 1, 2 and 3 nodes. */
const measured = [...textOf("test/bench/RESULTS.md").matchAll(rowPattern)].map(
  ([, operation = "", servers = "", text = ""]) => ({
    operation,
    servers,
    each: [...text.matchAll(measurePattern)].map(([, nodes, nodesUs, serversUs]) => ({
      nodes: Number(nodes),
      nodesUs: Number(nodesUs),
      serversUs: Number(serversUs)
    }))
  })
)

describe("the processor time of a cluster", () => {
  it("was measured on one server and on three", () => {
    const names = new Set(measured.map(({ servers }) => servers))
    expect(names).toEqual(new Set(["one server", "3 servers"]))
    for (const { each } of measured) expect(each.map(({ nodes }) => nodes)).toEqual([1, 2, 3])
  })

  it.each(measured)("is computed: $operation on $servers", ({ each, operation, servers }) => {
    const costs = costsOf(operation, servers)
    for (const { nodes, nodesUs, serversUs } of each) {
      expect(Math.abs(averageUs(costs.nodes, nodes) / nodesUs - 1)).toBeLessThan(errorMax)
      expect(Math.abs(averageUs(costs.servers, nodes) / serversUs - 1)).toBeLessThan(errorMax)
    }
  })
})

/** A figure of a table in thousands a second, or as a whole number. */
const rateOf = (text: string): number =>
  Number(text.replace("k", "")) * (text.endsWith("k") ? 1_000 : 1)

describe("a rate", () => {
  const results = textOf("test/bench/RESULTS.md")
  it.each([
    [
      "durable deposits over 100 mailboxes, 128 connections",
      "durable deposits over 100 mailboxes, of"
    ],
    ["to one mailbox", "durable deposits to one, of"],
    ["listings of 50 notifications", "listing of 50 [^|]* answering the same bytes"],
    [
      "relays, of notifications to 100 recipients each",
      "relays of notifications to 100 recipients each, of"
    ],
    [
      "notifications to one recipient each, accepted and relayed",
      "notifications to one recipient each, [^|]* of undici"
    ],
    ["pushes", "pushes to 1000 registrations, [^|]* of undici"],
    ["complete sessions", "session walks B2, B4–B7 "],
    ["deposits, one NATS server, 512 connections", "deposits through one node at 512 [^|]*R1"],
    [
      "deposits, three replicas on three servers, 512 connections",
      "deposits through one node at 512 [^|]*R3"
    ]
  ])("is the measured one: %s", (what, line) => {
    const [, written = ""] = new RegExp(`^\\| ${what} +\\| ([\\d,]+) `, "m")
      .exec(textOf("docs/how-to/size.md")) ?? []
    const [, rate = ""] = new RegExp(`^\\| ${line}[^|]*\\| (?:[\\d.]+ \\()?([\\d.]+k?) `, "m")
      .exec(results) ?? []
    expect(Math.abs(Number(written.replaceAll(",", "")) / rateOf(rate) - 1))
      .toBeLessThan(writtenErrorMax)
  })
})
