/** The calls of the plan, with what the OpenAPI document says of their operations. */
import { type Call, plan } from "./plan.ts"

type Content = Readonly<Record<string, unknown>>

interface OperationNode {
  readonly operationId: string
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<
    Record<string, { readonly $ref?: string; readonly content?: Content }>
  >
}

/** The parts of the document that the calls need. */
export interface Described {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationNode>>>>
  readonly components: {
    readonly responses: Readonly<Record<string, { readonly content?: Content }>>
  }
}

/** A call, with the first types of its request and of its answer, if they have a body. */
export interface OperationCall extends Call {
  readonly operationId: string
  readonly requestType: string | undefined
  readonly answerType: string | undefined
}

const methods = ["get", "head", "post", "put", "delete", "options"]

/** HEAD follows each GET, and OPTIONS the first call of each path. */
const withDerived = (calls: ReadonlyArray<Call>): ReadonlyArray<Call> => {
  const paths = new Set<string>()
  return calls.flatMap((call) => {
    const { key, path, status } = call
    const [method = "", pattern = ""] = key.split(" ")
    const isFirst = !paths.has(pattern)
    paths.add(pattern)
    const { body: _, save: __, until: ___, ...same } = call
    return [
      call,
      ...method === "GET" ? [{ ...same, key: `HEAD ${pattern}`, status }] : [],
      ...isFirst
        ? [{ key: `OPTIONS ${pattern}`, status: 204, ...path === undefined ? {} : { path } }]
        : []
    ]
  })
}

const operationAt = ({ paths }: Described, key: string): OperationNode => {
  const [method = "", pattern = ""] = key.split(" ")
  const node = paths[pattern]?.[method.toLowerCase()]
  if (node === undefined) throw new Error(`${key} is not in the document`)
  return node
}

const firstType = (content: Content | undefined): string | undefined =>
  Object.keys(content ?? {})[0]

/** Every call in its order; throws for an operation that the plan has and the document has not. */
export const operationCalls = (document: Described): ReadonlyArray<OperationCall> =>
  withDerived(plan).map((call) => {
    const { operationId, requestBody, responses } = operationAt(document, call.key)
    const answer = responses[call.status]
    const name = answer?.$ref?.split("/").at(-1) ?? ""
    const content = answer?.content ?? document.components.responses[name]?.content
    return {
      ...call,
      operationId,
      requestType: call.body === undefined ? undefined : firstType(requestBody?.content),
      answerType: call.key.startsWith("HEAD ") ? undefined : firstType(content)
    }
  })

/** The operations of the document that no call has. */
export const uncalled = (
  document: Described,
  calls: ReadonlyArray<OperationCall>
): ReadonlyArray<string> =>
  Object.entries(document.paths).flatMap(([pattern, item]) =>
    methods.filter((method) => item[method] !== undefined)
      .map((method) => `${method.toUpperCase()} ${pattern}`)
  ).filter((key) => !calls.some((call) => call.key === key))
