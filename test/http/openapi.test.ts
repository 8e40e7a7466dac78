/**
 * `/openapi.json` (protocol §6): it is OpenAPI 3.1, it describes every route, and every operation
 * answers valid and invalid requests as described.
 */
import addFormats from "ajv-formats"
import { Ajv2020 } from "ajv/dist/2020.js"
import { readFileSync } from "node:fs"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { makeDocument } from "../../http/formats/openapi/index.ts"
import { openapiDocument, resourceTable } from "../../http/resource-table.ts"
import { askBridge } from "./operations/bridge-calls.ts"
import { askContent, askMailboxes } from "./operations/mail-calls.ts"
import { askCabinets, askOutgoing } from "./operations/posting-calls.ts"
import { askCustomers, askQuotes } from "./operations/rows-calls.ts"
import { askAccounts, askAudit, askCluster, askModeration, askService,
  askSignIn } from "./operations/service-calls.ts"
import { callsTo, type OperationCalls } from "./operations/calls.ts"
import { admin, OperationRequester } from "./operation-requests.ts"
import { type Harness, startService } from "./harness.ts"
import { parametersOf } from "./requests.ts"
import { type Receiver, startReceiver } from "./receiver.ts"

let service: Harness
let receiver: Receiver
let requester: OperationRequester
let calls: OperationCalls

const send: Harness["send"] = (...request) => service.send(...request)

beforeAll(async () => {
  service = await startService(resourceTable)
  receiver = await startReceiver(({ path }, response) => {
    const challenge = new URL(path, "http://x").searchParams.get("hub.challenge")
    response.writeHead(path === "/refused" ? 404 : 200).end(challenge ?? "")
  })
  const body = "<account><name>nobody</name></account>"
  const created = await send("POST", "/accounts", { basic: admin, body })
  requester = new OperationRequester(service, `nobody:${created.child("token")}`)
  calls = callsTo(service, receiver, requester)
})
afterAll(async () => {
  await receiver.close()
  await service.close()
})

/** The served document. */
const served = async (): Promise<Record<string, unknown>> => {
  const { json } = await send("GET", "/openapi.json")
  // The first test checks its shape.
  return json as Record<string, unknown>
}

/**
 * The schema of the OpenAPI Initiative. It refers to Schema Objects by a dynamic reference, which
 * Ajv resolves to the root. No schema here extends it, so that a plain reference is equivalent.
 */
const metaSchema = (): object => {
  const text = readFileSync(new URL("openapi-3.1-schema.json", import.meta.url), "utf8")
  expect(text).toContain(`"$dynamicRef": "#meta"`)
  return JSON.parse(text.replaceAll(`"$dynamicRef": "#meta"`, `"$ref": "#/$defs/schema"`))
}

/** Every nested value with its name. */
const everything = (value: unknown, name = ""): ReadonlyArray<readonly [string, unknown]> =>
  typeof value !== "object" || value === null
    ? [[name, value]]
    : [[name, value], ...Object.entries(value).flatMap(([key, one]) => everything(one, key))]

describe("the document", () => {
  it("is OpenAPI 3.1 by the Initiative's own schema, and its schemas are JSON Schema", async () => {
    const document = await served()
    const ajv = new Ajv2020({ strict: false })
    addFormats.default(ajv)
    ajv.addFormat("media-range", true)
    const validate = ajv.compile(metaSchema())
    validate(document)
    expect(validate.errors).toBe(null)
    // The check must be able to fail.
    expect(validate({ ...document, info: {} })).toBe(false)
    const schemas = everything(document).filter(([name]) => name === "schema")
    const { components } = document as { components: { schemas: Record<string, object> } }
    for (const schema of [...schemas.map(([, one]) => one), ...Object.values(components.schemas)]) {
      expect([ajv.validateSchema(schema as object), schema]).toEqual([true, schema])
    }
    expect(schemas.length).toBeGreaterThan(100)
  })

  it("has no reference that leads nowhere, and no name twice", async () => {
    const document = await served()
    const refs = everything(document).flatMap(([name, one]) => name === "$ref" ? [String(one)] : [])
    const lost = [...new Set(refs)].filter((one) => service.contract.at(one.slice(1)) === undefined)
    expect(lost).toEqual([])
    const ids = service.contract.operations().map(({ node }) => String(node["operationId"]))
    expect(ids.filter((id, at) => ids.indexOf(id) !== at)).toEqual([])
  })

  it("names each of its tags once", async () => {
    // The first test checks its shape.
    const { tags } = await served() as { readonly tags: ReadonlyArray<{ readonly name: string }> }
    const names = tags.map(({ name }) => name)
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([])
  })

  it("describes every route, and is the document that the suites check", async () => {
    const routed = resourceTable(service.service).flatMap(({ methods, pattern }) =>
      [...Object.keys(methods), "OPTIONS", ...("GET" in methods ? ["HEAD"] : [])]
        .map((method) => `${method} ${pattern}`)
    )
    const described = service.contract.operations().map(({ key }) => key)
    expect([...described].sort()).toEqual([...routed].sort())
    expect(await served()).toEqual(service.contract.document)
  })

  it("is linked from the service's home, and may be cached", async () => {
    const home = await send("GET", "/", { accept: "text/html" })
    const link = `<${service.base}/openapi.json>; rel="service-desc"; type="application/json"`
    expect(home.header("link").split(", ")).toContain(link)
    expect(home.text).toContain(`<link rel="service-desc" href="${service.base}/openapi.json"`)
    expect((await send("GET", "/")).text).toContain("rel=\"service-desc\"")
    const answer = await send("GET", "/openapi.json", { accept: "text/html,*/*;q=0.8" })
    expect(answer.header("content-type")).toBe("application/json")
    expect(answer.header("cache-control")).toMatch(/^public, max-age=\d+$/)
    expect(answer.header("access-control-allow-origin")).toBe("*")
    const { version } = service.service.settings
    expect(await served()).toMatchObject({ servers: [{ url: service.base }], info: { version } })
  })

  it("has only header fields that a script of another origin may set and read", async () => {
    const headers = { "Access-Control-Request-Method": "POST" }
    const preflight = await send("OPTIONS", "/content", { headers })
    expect(preflight.header("access-control-expose-headers")).toBe("*")
    const allowed = preflight.header("access-control-allow-headers").toLowerCase().split(", ")
    const { components } = await served() as {
      components: { parameters: Record<string, { name: string; in: string }> }
    }
    const sent = Object.values(components.parameters).filter((one) => one.in === "header")
    expect(sent.map(({ name }) => name.toLowerCase()).filter((name) => !allowed.includes(name)))
      .toEqual([])
  })

  it("has plain summaries, descriptions, and an answer for a malformed request", async () => {
    for (const { key, node } of service.contract.operations()) {
      const [summary, description] = [String(node["summary"]), String(node["description"])]
      // Sentences without their period, and no label of the protocol such as (B2).
      expect([key, summary]).toEqual([key, expect.stringMatching(/^[A-Z][^()]*[^.()]$/)])
      expect([key, /\b[ABC]\d{1,2}\b/.test(summary)]).toEqual([key, false])
      expect([key, description]).toEqual([key, expect.stringMatching(/^[A-Z].*\.$/)])
      const early = ["400", "417", "429", "431", "501"].filter((one) =>
        node["responses"]?.[one] === undefined
      )
      expect([key, early]).toEqual([key, []])
    }
  })

  it("bounds every text that a client sends", async () => {
    const { contract } = service
    const textsIn = (pointer: string, seen = new Set<string>()): ReadonlyArray<string> => {
      const found = contract.at(pointer)
      if (found === undefined || seen.has(found.pointer)) return []
      seen.add(found.pointer)
      const schema: Record<string, unknown> = found.node
      const isBounded = ["pattern", "maxLength", "format", "enum", "const"].some((one) =>
        one in schema
      )
      const own = [schema["type"]].flat().includes("string") && !isBounded ? [found.pointer] : []
      const inner = ["properties", "anyOf", "allOf"].flatMap((name) =>
        Object.keys(schema[name] ?? {}).map((key) => `${found.pointer}/${name}/${key}`)
      )
      return [
        ...own,
        ...[...inner, `${found.pointer}/items`].flatMap((one) => textsIn(one, seen))
      ]
    }
    const sent = contract.operations().flatMap((operation) => [
      ...parametersOf(contract, operation).map(({ pointer }) => pointer),
      ...["json", "x-www-form-urlencoded"].map((type) =>
        `${operation.pointer}/requestBody/content/application~1${type}/schema`
      )
    ])
    expect([...new Set(sent.flatMap((pointer) => textsIn(pointer)))]).toEqual([])
    expect(textsIn("/paths/~1customers/put/requestBody/content/text~1csv/schema")).not.toEqual([])
  })

  it("bounds every number", async () => {
    const numbersIn = (document: unknown) =>
      everything(document).flatMap(([, one]) => {
        const schema = Object(one) as Record<string, unknown>
        const types = [schema["type"]].flat()
        return types.includes("integer") || types.includes("number") ? [schema] : []
      })
    const isUnbounded = (schema: Record<string, unknown>) =>
      !["minimum", "maximum"].every((name) =>
        [name, name.replace("m", "exclusiveM")].some((one) => typeof schema[one] === "number")
      )
    const numbers = numbersIn(await served())
    const { value } = service.contract.at("/components/schemas/Where/properties")?.node ?? {}
    // The values of a condition are bounded as texts, of which no keyword of a number tells.
    expect(numbers.filter(isUnbounded)).toEqual([
      value,
      expect.objectContaining({ description: value?.["description"], maxLength: 200 })
    ])
    expect(numbers.length).toBeGreaterThan(20)
    expect(numbersIn({ type: ["string", "integer"], minimum: 0 }).filter(isUnbounded))
      .toHaveLength(1)
  })

  it("lists JSON first wherever there is JSON", async () => {
    const contents = everything(await served()).flatMap(([name, one]) =>
      name === "content" ? [Object.keys(one as object)] : []
    )
    const late = contents.filter((types) =>
      types.some((type) => /\/(problem\+)?json$/.test(type)) &&
      !/\/(problem\+)?json$/.test(types[0] ?? "")
    )
    expect(late).toEqual([])
    expect(contents.length).toBeGreaterThan(100)
  })

  it("says which objects may have more members, and what each array holds", async () => {
    const schemas = everything(await served()).flatMap(([, one]) =>
      typeof one === "object" && one !== null && "type" in one
        ? [one as Record<string, unknown>]
        : []
    )
    const typed = (type: string) => schemas.filter((one) => [one["type"]].flat().includes(type))
    expect(typed("object").filter((one) => one["additionalProperties"] === undefined)).toEqual([])
    expect(typed("array").filter((one) => one["items"] === undefined)).toEqual([])
    expect(typed("object").length).toBeGreaterThan(50)
  })

  it("has no names that a generator of clients takes for one", async () => {
    // Generators drop what no identifier may have, and write the rest in another case.
    const merged = (names: ReadonlyArray<string>) => {
      const plain = names.map((name) => name.toLowerCase().replaceAll(/[^a-z0-9]/g, ""))
      return names.filter((_, at) => plain[at] === "" || plain.indexOf(plain[at] ?? "") !== at)
    }
    const document = await served()
    const { components } = document as { components: Record<string, object> }
    const names = [
      ...everything(document).flatMap(([name, one]) =>
        name === "properties" ? [Object.keys(one as object)] : []
      ),
      ...Object.values(components).map((part) => Object.keys(part)),
      service.contract.operations().map(({ node }) => String(node["operationId"])),
      ...service.contract.operations().map((one) =>
        parametersOf(service.contract, one).map(({ name }) => name)
      )
    ]
    expect(names.map(merged).filter((found) => found.length > 0)).toEqual([])
    expect(merged(["text", "#text", "a-b", "aB", "c"])).toEqual(["#text", "aB"])
  })

  it("names the root of each document that a client may send in XML", async () => {
    const document = await served()
    // The answer has been checked by the Initiative's schema.
    const { components: { schemas } } = document as {
      components: { schemas: Record<string, { xml?: { name?: string } }> }
    }
    const bodies = everything(document).flatMap(([name, body]) =>
      name === "requestBody" ? Object.entries((body as { content: object }).content) : []
    ).filter(([type]) => /^(application|text)\/(rss\+)?xml/.test(type))
    const names = bodies.map(([, { schema }]) => String(schema.$ref).split("/").at(-1) ?? "")
    expect(names.length).toBeGreaterThan(50)
    expect(names.filter((name) => schemas[name]?.xml?.name === undefined)).toEqual([])
  })

  it("has only components that something refers to", async () => {
    const document = await served()
    const text = JSON.stringify(document)
    const { components } = document as { components: Record<string, object> }
    const unused = ["schemas", "parameters", "headers", "responses"].flatMap((kind) =>
      Object.keys(components[kind] ?? {}).map((name) => `"#/components/${kind}/${name}"`)
    ).filter((reference) => !text.includes(reference))
    expect(unused).toEqual([])
  })

  it("has one type of each body and value with media=json: JSON, where there is JSON", async () => {
    const answer = await send("GET", "/openapi.json?media=json")
    const whole = await served()
    const contentsOf = (document: unknown) =>
      everything(document).flatMap(([name, one]) => {
        const types = name === "content" ? Object.keys(one as object) : []
        return types.some((type) => type.includes("/")) ? [types] : []
      })
    const firsts = contentsOf(whole).map(([type]) => [type])
    expect(contentsOf(answer.json)).toEqual(firsts)
    expect(firsts).toContainEqual(["application/json"])
    // A property named `content` is no body, and one named `type` is no type.
    const { schemas } = Object(whole["components"])
    const isList = (name: string, one: unknown) => name === "type" && Array.isArray(one)
    const oneTyped = JSON.stringify(schemas, (name, one) => isList(name, one) ? one[0] : one)
    expect(oneTyped).not.toBe(JSON.stringify(schemas))
    expect(answer.json).toMatchObject({ components: { schemas: JSON.parse(oneTyped) } })
    expect(everything(answer.json).filter(([name, one]) => isList(name, one))).toEqual([])
    expect((await send("GET", "/openapi.json?media=xml")).status).toBe(400)
  })

  it("names no server on localhost, where a client on another machine would find its own", () => {
    const { settings } = service.service
    const serversAt = (baseUrl: string) => openapiDocument({ ...settings, baseUrl })["servers"]
    expect(serversAt("http://localhost:8080")).toEqual([{ url: "/" }])
    expect(serversAt("https://post.example.org")).toEqual([{ url: "https://post.example.org" }])
  })

  it("cannot be made of an operation without a known method", () => {
    const { settings } = service.service
    const group = { tag: "strange", about: "", schemas: {} }
    const operation = { id: "strange", summary: "Strange" }
    const makeOf = (key: string) =>
      makeDocument(settings, [{ ...group, operations: { [key]: operation } }])
    expect(() => makeOf("GET /strange")).not.toThrow()
    expect(() => makeOf("FETCH /strange")).toThrow("FETCH /strange")
  })
})

describe("the harness finds", () => {
  const careful = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin"
  }
  const found = (path: string, status: number, fields: Record<string, string>, text: string) => {
    const tag = status === 200 ? { etag: "x" } : undefined
    const headers = new Headers({ vary: "x", "cache-control": "x", ...tag, ...fields })
    return service.contract.faults({ method: "GET", path, status, headers, text })
  }
  const answer = (path: string, status: number, type: string, text: string) =>
    found(path, status, { ...careful, "content-type": type }, text)

  it("any answer that a browser may guess, run, embed, or name to others", () => {
    expect(found("/no/such/path", 404, {}, "")).toEqual([
      "x-content-type-options is not nosniff",
      "referrer-policy is not no-referrer",
      "content-security-policy is not sandbox; default-src 'none'; frame-ancestors 'none'",
      "cross-origin-resource-policy is not same-origin"
    ])
    expect(found("/no/such/path", 404, careful, "")).toEqual([])
  })

  it("a refusal that does not name its check or limit", () => {
    const type = "application/problem"
    const silent = ["<problem><title>x</title></problem>", "<problem><detail/></problem>"]
    for (const status of [401, 403, 413, 429, 507]) {
      const fault = [`the problem ${status} has no detail`]
      for (const text of silent) {
        expect(answer("/no/such/path", status, `${type}+xml`, text)).toEqual(fault)
      }
      const json = (detail: string) => answer("/no/such/path", status, `${type}+json`, detail)
      expect(json("{\"title\":\"x\"}")).toEqual(fault)
      expect(json("{\"detail\":\"x\"}")).toEqual([])
    }
    expect(answer("/no/such/path", 404, `${type}+xml`, silent[0] ?? "")).toEqual([])
  })

  it("statuses, types, fields and bodies that are not listed", () => {
    expect(answer("/sessions", 418, "", "")).toEqual(["418 is not listed"])
    expect(answer("/cluster", 200, "image/png", "?")).toEqual(["image/png is not listed"])
    expect(found("/livez", 200, { ...careful, "x-new": "1" }, "")).toContainEqual(
      "the field x-new is not listed"
    )
    expect(answer("/openapi.json", 200, "application/json", "{\"openapi\":\"3.1.0\"}"))
      .toEqual([expect.stringContaining("required"), expect.stringContaining("required")])
    expect(answer("/quotes", 200, "text/xml", "<quotas/>"))
      .toEqual(["the root is quotas, not quotes or quote"])
    expect(answer("/quotes/A", 200, "text/xml", "<quote href=\"/x\" symbol=\"A\" sold=\"1\"/>"))
      .toEqual([expect.stringContaining("sold")])
    const problem = { type: `${service.base}/problems/gone`, title: "", status: 404, instance: "/" }
    const text = JSON.stringify(problem)
    expect(answer("/problems/x", 404, "application/problem+json", text))
      .toEqual([expect.stringContaining("/problems/not-found")])
    service.contract.answered.clear()
  })
})

// Each test sends hundreds of requests.
describe("every operation answers as it says", () => {
  it("the service, probes and files", () => askService(calls))
  it("accounts and tokens", () => askAccounts(calls))
  it("browsers that sign in", () => askSignIn(calls))
  it("content and receipts", () => askContent(calls))
  it("mailboxes, notifications, registrations", () => askMailboxes(calls))
  it("outgoing notifications", () => askOutgoing(calls))
  it("cabinets", () => askCabinets(calls))
  it("the bridge, sessions and questions", () => askBridge(calls))
  it("quotes", () => askQuotes(calls))
  it("customers, files of them, and queries", () => askCustomers(calls))
  it("the audit log", () => askAudit(calls))
  it("blocks and reports", () => askModeration(calls))
  it("the cluster, and quarantined actors", () => askCluster(calls))
})

describe("a document that was read", () => {
  it("can be sent back", async () => {
    const json = { accept: "application/json", basic: admin }
    const type = "application/json"
    const made = async (path: string, body: string) =>
      (await send("POST", path, { basic: admin, body })).header("location")
    const mailbox = await made("/mailboxes", "<mailbox><name>read-back</name></mailbox>")
    const item = "<item><description>d</description><url>http://example.org/</url></item>"
    await made(mailbox, `<notification>${item}</notification>`)
    const callback = `<callback>${receiver.origin}/hook</callback>`
    const paths = [
      mailbox,
      await made(`${mailbox}/registrations`, `<registration>${callback}</registration>`),
      await made("/cabinets", `<cabinet><mailbox href="${mailbox}"/></cabinet>`),
      await made("/quotes", "<quote symbol=\"BACK\"><price currency=\"EUR\">1</price></quote>"),
      await made("/customers", "<customer><name>Neo</name><age>37</age></customer>"),
      await made("/queries", "<query on=\"customers\"><return>name</return></query>")
    ]
    for (const path of paths) {
      const { text } = await send("GET", path, json)
      const answer = await send("PUT", path, { ...json, type, body: text })
      expect([path, answer.status, answer.text]).toEqual([path, 200, expect.any(String)])
      const fault = await send("PUT", path, {
        ...json,
        type,
        body: text.replace(/\}\s*$/, ",\"misspelled\":\"x\"}")
      })
      expect([path, fault.status, fault.text])
        .toEqual([path, 422, expect.stringContaining("misspelled")])
    }
  })
})

describe("of the document", () => {
  it("no operation was left out, and no answer that it promises", () => {
    const operations = service.contract.operations()
    expect(operations.map(({ key }) => key).filter((key) => !requester.asked.has(key))).toEqual([])
    const promised = operations.filter(({ key }) => !/^(HEAD|OPTIONS)/.test(key)).flatMap((one) =>
      Object.keys(one.node["responses"] ?? {}).filter((status) => /^[23]/.test(status))
        .flatMap((status) => {
          const at = `${one.pointer}/responses/${status}/content`
          const types = Object.keys(service.contract.at(at)?.node ?? {})
          const isAny = types.length === 0 || types.includes("*/*")
          return (isAny ? [""] : types).map((type) => [one.key, `${status} ${type}`] as const)
        })
    )
    const broken = promised.filter(([key, answer]) => {
      const answers = [...service.contract.answered.get(key) ?? []]
      return !answers.some((one) => one === answer.trim() || one.startsWith(answer))
    })
    // One changes every second, and the others are another document at each node.
    const ofCluster = ["/cluster", "/cluster/history", "/cluster/messages"]
    const changing = ["/admin", ...ofCluster, "/limits", "/settings"]
      .map((path) => `GET ${path} 304 `)
    expect(broken.filter(([key, one]) => !changing.includes(`${key} ${one}`))).toEqual([])
  })
})
