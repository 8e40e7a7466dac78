/** openapi-typescript with openapi-fetch: a program in its types calls every operation. */
import { symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { runProgram } from "../program.ts"
import type { Bench, Finding, ForeignSuite } from "../suite.ts"
import { prepareBrokenMailboxes, quarantineBrokenMailboxes } from "./broken-mailboxes.ts"
import { type Described, type OperationCall, operationCalls, uncalled } from "./operation-calls.ts"

const withinMs = 300_000

const pauseMs = 200

const attemptsMax = 300

const bytesType = "application/octet-stream"

const formType = "application/x-www-form-urlencoded"

const preamble = `import createClient from "openapi-fetch"
import type { paths } from "./schema.js"

const [origin = "", token = ""] = process.argv.slice(2)
const client = createClient<paths, "application/json">({
  baseUrl: origin,
  redirect: "manual",
  headers: { Authorization: \`Bearer \${token}\`, Accept: "application/json" }
})

interface Result<T> {
  readonly data?: T | undefined
  readonly error?: unknown
  readonly response: Response
}
interface Finding { readonly check: string; readonly isPassed: boolean; readonly detail?: string }

const findings: Array<Finding> = []
const saved = new Map<string, string>()
const value = (name: string): string => saved.get(name) ?? ""
const last = (uri: string): string => uri.split("/").at(-1) ?? ""
const member = (data: unknown, path: string): string =>
  String(path.split("/").reduce(
    (one: unknown, name) => (one as Readonly<Record<string, unknown>>)[name],
    data
  ))

/** Calls, and checks the status and that the answer was read into its type. */
const check = async <T>(
  key: string,
  status: number,
  hasData: boolean,
  call: () => Promise<Result<T>>,
  then: (data: T | undefined, response: Response) => void = () => {},
  isDone: (data: T | undefined) => boolean = () => true
): Promise<void> => {
  let detail: string | undefined
  try {
    let result = await call()
    for (let n = 0; n < ${attemptsMax} && result.response.ok && !isDone(result.data); n += 1) {
      await new Promise((resolve) => setTimeout(resolve, ${pauseMs}))
      result = await call()
    }
    const { data, error, response } = result
    if (response.status !== status) detail = \`\${response.status} \${JSON.stringify(error)}\`
    else if (hasData && data === undefined && error === undefined) detail = "it has no data"
    else if (!isDone(data)) detail = "what it waits for did not come true"
    else then(data, response)
  } catch (thrown) {
    detail = String(thrown)
  }
  const isPassed = detail === undefined
  findings.push({ check: key, isPassed, ...detail === undefined ? {} : { detail } })
}
`

const quoted = (value: unknown): string => JSON.stringify(value)

/** A literal with saved values in place of their names. */
const literal = (value: unknown): string => {
  if (typeof value === "string" && value.startsWith("$")) return `value(${quoted(value.slice(1))})`
  if (typeof value !== "object" || value === null) return quoted(value)
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`
  const entries = Object.entries(value).map(([name, one]) => `${quoted(name)}: ${literal(one)}`)
  return `{ ${entries.join(", ")} }`
}

const savedFrom = (source: string): string =>
  source === "location"
    ? `last(response.headers.get("location") ?? "")`
    : source === "edit"
    ? `last(/<([^>]*)>; rel="edit"/.exec(response.headers.get("link") ?? "")?.[1] ?? "")`
    : `last(member(data, ${quoted(source.slice("json:".length))}))`

/** Whether an answer is one JSON value; `application/x-ndjson` is a line for each. */
const isJson = (type: string): boolean => /[/+]json$/.test(type)

/** What is read into the type of the document, as a type expression. */
const dataType = ({ answerType, key, status }: OperationCall): string => {
  if (answerType === "application/json") {
    const [method = "", pattern = ""] = key.split(" ")
    const operation = `paths[${quoted(pattern)}][${quoted(method.toLowerCase())}]`
    return `${operation}["responses"][${status}]["content"]["application/json"]`
  }
  return "unknown"
}

/** A call as a statement, with its arguments as literals that the compiler checks. */
const statement = (call: OperationCall): string => {
  const { answerType, body, key, path, query, requestType, save = {}, status, until } = call
  const [method = "", pattern = ""] = key.split(" ")
  const params = [
    ...path === undefined ? [] : [`path: ${literal(path)}`],
    ...query === undefined ? [] : [`query: ${literal(query)}`]
  ]
  const options = [
    ...params.length === 0 ? [] : [`params: { ${params.join(", ")} }`],
    ...body === undefined ? [] : [`body: ${literal(body)}`],
    ...requestType === bytesType ? ["bodySerializer: (body) => body"] : [],
    ...requestType === bytesType || requestType === formType
      ? [`headers: { "Content-Type": ${quoted(requestType)} }`]
      : [],
    ...answerType === undefined || isJson(answerType) ? [] : [`parseAs: "text"`]
  ]
  // A deposit is answered with a page or, to a program, with nothing.
  const hasData = answerType !== undefined && status < 300 && pattern !== "/mailboxes/{mailbox}"
  const request = `() => client.${method}(${quoted(pattern)}, { ${options.join(", ")} })`
  const saving = Object.entries(save).map(([name, source]) =>
    `saved.set(${quoted(name)}, ${savedFrom(source)})`
  )
  const done = until === undefined
    ? []
    : [`(data) => data !== undefined && member(data, ${quoted(until[0])}) === ${quoted(until[1])}`]
  const args = [quoted(key), String(status), String(hasData), request]
  const then = `(data, response) => { ${saving.join("; ")} }`
  return `await check<${dataType(call)}>(${[...args, then, ...done].join(", ")})`
}

const compilerOptions = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  target: "es2022",
  module: "nodenext",
  lib: ["es2022", "dom", "dom.iterable"],
  types: ["node"],
  skipLibCheck: false
}

const run = async (bench: Bench): Promise<ReadonlyArray<Finding>> => {
  const { folder, origin, pathOf, token } = bench
  const uri = `${origin}/openapi.json`
  const failed = (check: string, { errors, output }: { errors: string; output: string }) => [
    { check, isPassed: false, detail: `${output}${errors}`.slice(0, 2000) }
  ]
  const schema = join(folder, "schema.d.ts")
  const generated = await bench.run("openapi-typescript", [uri, "-o", schema], { withinMs })
  if (generated.code !== 0) return failed("generates types", generated)
  // The document has this form.
  const document = await (await fetch(uri)).json() as Described
  const calls = operationCalls(document)
  // The packages of the suite, for the compiler and the program.
  symlinkSync(dirname(dirname(pathOf("tsc"))), join(folder, "node_modules"))
  writeFileSync(join(folder, "package.json"), `{ "type": "module" }\n`)
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions }))
  const program = [preamble, ...calls.map(statement), "console.log(JSON.stringify(findings))", ""]
  writeFileSync(join(folder, "calls.ts"), program.join("\n"))
  const compiled = await bench.run("tsc", ["-p", folder], { withinMs })
  if (compiled.code !== 0) return failed("compiles in strict mode", compiled)
  await quarantineBrokenMailboxes(bench)
  const args = [join(folder, "calls.js"), origin, token]
  const called = await runProgram(process.execPath, args, { cwd: folder, withinMs })
  if (called.code !== 0) throw new Error(`calls.js failed: ${called.errors}`)
  return [
    { check: "generates types", isPassed: true },
    { check: "compiles in strict mode", isPassed: true },
    ...uncalled(document, calls).map((check) => ({ check, isPassed: false, detail: "not called" })),
    // The program writes findings.
    ...JSON.parse(called.output) as ReadonlyArray<Finding>
  ]
}

export const openapiTypescript: ForeignSuite = {
  name: "openapi-typescript",
  checks: "a program in the generated types compiles in strict mode and calls every operation",
  source: {
    registry: "npm",
    name: "openapi-typescript",
    version: "7.13.0",
    beside: ["openapi-fetch@0.17.0", "typescript@5.9.3", "@types/node@20.19.43"]
  },
  prepare: prepareBrokenMailboxes,
  reasons: [],
  run
}
