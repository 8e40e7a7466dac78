/** What the suites from outside request, beside the operations that the service describes. */
import { describe, expect, it } from "vitest"
import { openapiDocument } from "../../http/resource-table.ts"
import { exampleTemplates, type Paths, withoutExample } from "./httplint/resources.ts"
import { type Described, operationCalls, uncalled } from "./openapi/operation-calls.ts"

const described = openapiDocument({
  baseUrl: "http://localhost:8080",
  version: "0",
  contentBytesMax: 1000
})

// The document has these forms, as the suites read it.
const document = described as unknown as Described & Paths

/** The document with an operation that no suite knows. */
const planted = (key: string): Described & Paths => {
  const [method = "", path = ""] = key.split(" ")
  const operation = { operationId: "planted", responses: {} }
  return { ...document, paths: { ...document.paths, [path]: { [method]: operation } } }
}

describe("the plan of the generated clients", () => {
  it("calls every operation of the service", () => {
    expect(uncalled(document, operationCalls(document))).toEqual([])
  })

  it("lacks an operation that is new, and a call that is removed", () => {
    const changed = planted("get /planted")
    expect(uncalled(changed, operationCalls(document))).toEqual(["GET /planted"])
    const calls = operationCalls(document).filter(({ key }) => key !== "GET /audit/chain")
    expect(uncalled(document, calls)).toEqual(["GET /audit/chain"])
  })
})

describe("the examples for httplint", () => {
  it("are of every path of the service", () => {
    expect(withoutExample(document)).toEqual([])
  })

  it("lack a path that is new, unless it is an action of a resource that has one", () => {
    expect(withoutExample(planted("get /mailboxes/{mailbox}/planted")))
      .toEqual(["/mailboxes/{mailbox}/planted"])
    expect(withoutExample(planted("get /planted/{id}"))).toEqual(["/planted/{id}"])
    expect(withoutExample(planted("post /planted/{id}/plant"))).toEqual(["/planted/{id}/plant"])
    expect(withoutExample(planted("post /mailboxes/{mailbox}/plant"))).toEqual([])
  })

  it("are of paths that the service has", () => {
    expect(Object.keys(document.paths)).toEqual(expect.arrayContaining([...exampleTemplates]))
  })
})
