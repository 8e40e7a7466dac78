/** Checks requests against the OpenAPI document: path, query, header fields and body. */
import { parseForm } from "../../http/formats/form-fields.ts"
import type { Contract, Operation } from "./contract.ts"

/** A request before it is sent. */
export interface Asked {
  /** The path with its query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly type: string | undefined
  readonly body: string | undefined
}

interface Parameter {
  readonly pointer: string
  readonly name: string
  readonly in: string
  readonly required: boolean
}

/** The parameters of an operation and of its path. */
export const parametersOf = (
  contract: Contract,
  { pointer }: Operation
): ReadonlyArray<Parameter> =>
  [pointer, pointer.slice(0, pointer.lastIndexOf("/"))].flatMap((at) =>
    Object.keys(contract.at(`${at}/parameters`)?.node ?? {}).flatMap((index) => {
      const found = contract.at(`${at}/parameters/${index}`)
      if (found === undefined) return []
      // The meta schema defines the members of a Parameter Object.
      const node = found.node as unknown as Parameter
      const { name, required = false } = node
      return [{ pointer: `${found.pointer}/schema`, name, in: node.in, required }]
    })
  )

/** A text of digits as a number, any other text unchanged. */
const typed = (text: string): unknown => /^-?\d+$/.test(text) ? Number(text) : text

const valueFaults = (
  contract: Contract,
  { name, pointer }: Parameter,
  text: string
): ReadonlyArray<string> => {
  // A text that looks like a number fits either kind of schema.
  const faults = contract.invalid(pointer, typed(text))
  const other = faults.length === 0 ? [] : contract.invalid(pointer, text)
  return other.map((fault) => `${name}: ${fault}`)
}

const queryFaults = (
  contract: Contract,
  parameters: ReadonlyArray<Parameter>,
  query: string
): ReadonlyArray<string> => {
  const parsed = parseForm(query)
  if (!parsed.ok) return [parsed.fault]
  const entries = parsed.value.entries()
  const declared = parameters.filter((one) => one.in === "query")
  return [
    ...declared.filter(({ name, required }) => required && !parsed.value.has(name))
      .map(({ name }) => `the query has no ${name}`),
    ...entries.flatMap(([name, value]) => {
      const one = declared.find((parameter) => parameter.name === name)
      return one === undefined
        ? [`the query has ${name}, which is not listed`]
        : valueFaults(contract, one, value)
    })
  ]
}

const headerFaults = (
  contract: Contract,
  { node }: Operation,
  parameters: ReadonlyArray<Parameter>,
  names: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const declared = new Set(
    parameters.filter((one) => one.in === "header").map(({ name }) => name.toLowerCase())
  )
  const schemes = Object.values(node["security"] ?? {}).flatMap((one) => Object.keys(one))
  if (schemes.includes("messagePassword")) declared.add("message-password")
  return names.filter((name) => !declared.has(name.toLowerCase()))
    .map((name) => `the field ${name} is not listed`)
}

const bodyFaults = (
  contract: Contract,
  { pointer }: Operation,
  { body, type }: Asked
): ReadonlyArray<string> => {
  const described = contract.at(`${pointer}/requestBody`)?.node
  if (body === undefined || type === undefined) {
    const isRequired: unknown = described?.["required"]
    return isRequired === true ? ["the body is missing"] : []
  }
  if (described === undefined) return ["a body is not listed"]
  const media = type.split(";")[0] ?? ""
  const content = described["content"] ?? {}
  if (Object.hasOwn(content, "*/*")) return []
  if (!Object.hasOwn(content, media)) return [`a body of ${media} is not listed`]
  const name = media.replaceAll("/", "~1")
  const schema = `${pointer}/requestBody/content/${name}/schema`
  if (media !== "application/x-www-form-urlencoded") {
    return contract.bodyFaults(schema, media, body)
  }
  const form = parseForm(body)
  return form.ok
    ? contract.invalid(schema, Object.fromEntries(form.value.entries()))
    : [form.fault]
}

/** How a request differs from the document. */
export const requestFaults = (
  contract: Contract,
  operation: Operation,
  asked: Asked
): ReadonlyArray<string> => {
  const parameters = parametersOf(contract, operation)
  const [path = "", query = ""] = asked.path.split("?")
  const [, pattern = ""] = operation.key.split(" ")
  const segments = path.split("/")
  const pathFaults = pattern.split("/").flatMap((segment, at) => {
    const one = parameters.find(({ name }) => segment === `{${name}}`)
    return one === undefined
      ? []
      : valueFaults(contract, one, decodeURIComponent(segments[at] ?? ""))
  })
  return [
    ...pathFaults,
    ...queryFaults(contract, parameters, query),
    ...headerFaults(contract, operation, parameters, Object.keys(asked.headers)),
    ...bodyFaults(contract, operation, asked)
  ]
}
