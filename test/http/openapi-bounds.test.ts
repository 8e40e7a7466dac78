/**
 * The bounds of `/openapi.json` are those that the service enforces: it accepts values at a bound,
 * and refuses those just beyond it.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { patternUpTo } from "../../http/formats/openapi/index.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { type Harness, startService } from "./harness.ts"
import { admin } from "./operation-requests.ts"
import { parametersOf } from "./requests.ts"

let service: Harness

const send: Harness["send"] = (...request) => service.send(...request)

beforeAll(async () => {
  service = await startService(resourceTable)
})
afterAll(() => service.close())

/** Values at the bounds of a schema, and just beyond them. */
const boundsOf = (
  { anyOf, maxLength, maximum, minimum }: Bounded
): { readonly within: ReadonlyArray<string>; readonly beyond: ReadonlyArray<string> } => {
  const inner = (anyOf ?? []).map(boundsOf)
  const text = (length: number | undefined) => length === undefined ? [] : ["x".repeat(length)]
  const number = (value: number | undefined) => value === undefined ? [] : [String(value)]
  return {
    within: [
      ...[...number(minimum), ...number(maximum), ...text(maxLength)],
      ...inner.flatMap((one) => one.within)
    ],
    beyond: [
      ...number(minimum === undefined ? undefined : minimum - 1),
      ...number(maximum === undefined ? undefined : maximum + 1),
      ...text(maxLength === undefined ? undefined : maxLength + 1),
      ...inner.flatMap((one) => one.beyond)
    ]
  }
}

/** The keywords of a schema that `boundsOf` reads. */
interface Bounded {
  readonly anyOf?: ReadonlyArray<Bounded>
  readonly maxLength?: number
  readonly maximum?: number
  readonly minimum?: number
}

describe("the service enforces the bounds", () => {
  it("of each parameter of a query", async () => {
    const opened = await send("POST", "/mailboxes", { basic: admin })
    const mailbox = new URL(opened.header("location")).pathname
    const body = `<cabinet><mailbox href="${opened.header("location")}"/></cabinet>`
    const cabinet = new URL(
      (await send("POST", "/cabinets", { basic: admin, body })).header("location")
    ).pathname
    const content = new URL(
      (await send("POST", "/content", { basic: admin, body: "x" })).header("location")
    ).pathname
    const paths: Record<string, string> = {
      "/content/{content}/receipts": `${content}/receipts`,
      "/mailboxes/{mailbox}": mailbox,
      "/cabinets/{cabinet}": cabinet,
      "/cluster/actors/{kind}": "/cluster/actors/account",
      "/outgoing/{account}": "/outgoing/admin"
    }
    const { contract } = service
    const tried = new Set<string>()
    for (const operation of contract.operations()) {
      const [method = "", pattern = ""] = operation.key.split(" ")
      // An answer in a URI is refused as one in a document is.
      const refusal = pattern.startsWith("/questions/") ? 422 : 400
      const parameters = parametersOf(contract, operation).filter((one) => one.in === "query")
      for (const one of parameters) {
        // The meta schema defines the keywords.
        const { beyond, within } = boundsOf(contract.at(one.pointer)?.node as unknown as Bounded)
        const others = parameters.filter(({ name, required }) => required && name !== one.name)
        const statusOf = async (value: string) => {
          const query = new URLSearchParams([
            ...others.map(({ name }) => [name, "x"] as [string, string]),
            [one.name, value] as [string, string]
          ])
          const path = `${paths[pattern] ?? pattern}?${query}`
          return (await send(method, path, { basic: admin })).status
        }
        for (const value of within) {
          const answer = [operation.key, one.name, value, await statusOf(value)]
          expect([200, 406], String(answer)).toContain(answer[3])
        }
        for (const value of beyond) {
          expect([operation.key, one.name, value, await statusOf(value)])
            .toEqual([operation.key, one.name, value, refusal])
        }
        if (within.length > 0) tried.add(`${operation.key} ${one.name}`)
      }
    }
    for (const method of ["GET", "HEAD"]) {
      for (const path of [...Object.keys(paths), "/audit", "/customers", "/content"]) {
        expect([...tried]).toContain(`${method} ${path} limit`)
      }
      expect([...tried]).toContain(`${method} /customers agemin`)
      expect([...tried]).toContain(`${method} /questions/hard_question air_speed`)
    }
  })

  it("of each number in a document", async () => {
    const { contentBytesMax } = service.service.settings
    const json = { accept: "application/json", basic: admin, type: "application/json" }
    const mailbox = (value: string) => `{"fetch-limit":${value}}`
    const customer = (value: string) => `{"name":"Neo","age":${value}}`
    const query = (member: string) => `{"on":"customers","return":"name",${member}}`
    const limited = (value: string) => query(`"limit":${value}`)
    const where = (value: string) => query(`"where":[{"field":"name","value":${value}}]`)
    let symbols = 0
    const quote = (value: string) =>
      `{"symbol":"B${symbols++}","price":{"currency":"EUR","text":${value}}}`
    const tried: ReadonlyArray<readonly [string, string, boolean]> = [
      ...["0", String(contentBytesMax)].map((one) => ["mailboxes", mailbox(one), true] as const),
      ["mailboxes", mailbox("-1"), false],
      ["mailboxes", mailbox(String(contentBytesMax + 1)), false],
      ...["0", "150"].map((one) => ["customers", customer(one), true] as const),
      ...["-1", "151"].map((one) => ["customers", customer(one), false] as const),
      ...["1", "1000000000"].map((one) => ["queries", limited(one), true] as const),
      ...["0", "1000000001"].map((one) => ["queries", limited(one), false] as const),
      ["queries", where("1".repeat(200)), true],
      ["queries", where("1".repeat(201)), false],
      ...["9".repeat(64), `-${"9".repeat(63)}`].map((one) => ["quotes", quote(one), true] as const),
      ...[`1${"0".repeat(64)}`, `-1${"0".repeat(63)}`, "1e64"].map((one) =>
        ["quotes", quote(one), false] as const
      )
    ]
    for (const [name, body, isAccepted] of tried) {
      const { status } = await send("POST", `/${name}`, { ...json, body })
      expect([body, status === 201]).toEqual([body, isAccepted])
      if (!isAccepted) expect([400, 422]).toContain(status)
    }
    // What the document says of them.
    const bounds = ([pointer, least, most]: readonly [string, string, string]) => {
      const node: Record<string, unknown> = service.contract.at(pointer)?.node ?? {}
      return [node[least], node[most]]
    }
    const schemas = "/components/schemas"
    expect([
      bounds([`${schemas}/NewMailbox/properties/fetch-limit`, "minimum", "maximum"]),
      bounds([`${schemas}/NewCustomer/properties/age`, "minimum", "maximum"]),
      bounds([`${schemas}/Query/properties/limit`, "minimum", "maximum"]),
      bounds([
        `${schemas}/NewQuote/properties/price/anyOf/0`,
        "exclusiveMinimum",
        "exclusiveMaximum"
      ])
    ]).toEqual([[0, contentBytesMax], [0, 150], [1, 1_000_000_000], [-1e63, 1e64]])
  })

  it("of a currency in a form, with what is removed at its ends", async () => {
    const schema = "/requestBody/content/application~1x-www-form-urlencoded/schema/properties"
    const { pattern } = service.contract.at(`/paths/~1quotes/post${schema}/currency`)?.node ?? {}
    const type = "application/x-www-form-urlencoded"
    for (
      const [currency, isAccepted] of [["", true], [" ", true], [" EUR\t", true], ["E U", false]]
    ) {
      const body = String(
        new URLSearchParams({ symbol: "PADDED", price: "1", currency: String(currency) })
      )
      const { status } = await send("POST", "/quotes", { basic: admin, type, body })
      const fits = new RegExp(String(pattern), "u").test(String(currency))
      expect([currency, status < 400, fits]).toEqual([currency, isAccepted, isAccepted])
    }
  })

  it("of digits, with a pattern for any bound", () => {
    const texts = Array.from({ length: 1_200 }, (_, value) => String(value))
    for (const max of [0, 9, 10, 99, 105, 360, 999, 1_000]) {
      const pattern = new RegExp(patternUpTo(max, 4), "u")
      const wrong = [...texts, "00", "0009", "0105", "0999"].filter((text) =>
        pattern.test(text) !== (Number(text) <= max)
      )
      expect([max, wrong]).toEqual([max, []])
      expect(["00000", "-1", "x", "0x1"].some((text) => pattern.test(text))).toBe(false)
    }
  })

  it("of a fetch limit that is a text", () => {
    const pointer = "/components/schemas/NewMailbox/properties/fetch-limit"
    const pattern = String(service.contract.at(pointer)?.node["pattern"])
    const { contentBytesMax } = service.service.settings
    const fits = (text: string) => new RegExp(pattern, "u").test(text)
    expect(["", "0", "007", `00${contentBytesMax}`, String(contentBytesMax - 1)].filter(fits))
      .toHaveLength(5)
    expect([String(contentBytesMax + 1), `${contentBytesMax}0`, "0".repeat(16), "-1"].some(fits))
      .toBe(false)
  })
})
