/** httplint: the fields of the answers of every resource, with the errors that clients cause. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../../bench/process.ts"
import { Recorder } from "./exchanges.ts"
import { deleteAll, type Labeled, makeResources, type Paths, requestAll,
  templateOf } from "./resources.ts"
import type { Bench, Finding, ForeignSuite } from "../suite.ts"

const withinMs = 300_000

/** A note of the linter. */
interface Note {
  readonly note: string
  readonly level: "GOOD" | "INFO" | "WARN" | "BAD"
  readonly subject: string
  readonly summary: string
}

const findingsOf = ({ exchange, label }: Labeled, notes: ReadonlyArray<Note>): Array<Finding> => {
  const faults = notes.filter(({ level }) => level === "BAD" || level === "WARN")
  return faults.length === 0
    ? [{ check: label, isPassed: true }]
    : faults.map(({ level, note, subject, summary }) => ({
      check: label,
      isPassed: false,
      detail: `${level} ${note} of ${subject} at ${exchange.status}: ${summary}`
    }))
}

const run = async ({ folder, origin, run, token }: Bench): Promise<ReadonlyArray<Finding>> => {
  const recorder = new Recorder(origin, token)
  const examples = await makeResources(recorder)
  // The document has this form.
  const document = await (await fetch(`${origin}/openapi.json`)).json() as Paths
  const made = recorder.exchanges.map((exchange) => ({
    label: `${exchange.method} ${templateOf(document, new URL(exchange.uri).pathname)}, new`,
    exchange
  }))
  const labeled: ReadonlyArray<Labeled> = [
    ...made,
    ...await requestAll(recorder, document, examples),
    ...await deleteAll(recorder, document, examples)
  ]
  const file = join(folder, "exchanges.jsonl")
  writeFileSync(file, labeled.map(({ exchange }) => `${JSON.stringify(exchange)}\n`).join(""))
  const script = `${root}test/foreign/httplint/lint_exchanges.py`
  const { code, errors, output } = await run("python", [script, file], { withinMs })
  if (code !== 0) throw new Error(`lint_exchanges.py ended with ${code}: ${errors}`)
  const lines = output.trimEnd().split("\n")
  // One line of notes for each exchange.
  return labeled.flatMap((one, at) => findingsOf(one, JSON.parse(lines[at] ?? "") as Array<Note>))
}

export const httplint: ForeignSuite = {
  name: "httplint",
  checks: "the fields of the answers of every path, also conditional, partial and to faults",
  source: { registry: "PyPI", name: "httplint", version: "2026.10.4" },
  reasons: [
    {
      what: "`Accept` in answers with 415",
      check: /^POST /,
      detail: /^BAD REQUEST_HDR_IN_RESPONSE .* at 415: "Accept"/,
      why: "There it names the types that are accepted (RFC 9110 §12.5.1, §15.5.16)."
    },
    {
      what: "answers with 400",
      check: /, malformed$|^POST \/outgoing\/\{account\}\/retry, /,
      detail: /^WARN STATUS_BAD_REQUEST /,
      why: "The suite sends malformed requests, to see the answers to them."
    },
    {
      what: "`Content-Disposition` of content without `filename`",
      check: /\/content\/\{content\}/,
      detail: /^WARN DISPOSITION_OMITS_FILENAME /,
      why: "Its publisher gave no name, and the parameter is optional (RFC 6266 §4.1)."
    },
    {
      what: "`Location` in answers with 202",
      check: /^POST /,
      detail: /^WARN LOCATION_UNDEFINED .* at 202/,
      why: "A1, A2 and A5 of the protocol prescribe it: the URI of what was accepted."
    },
    {
      what: "`Location` in the answer with 200 to `PUT /customers`",
      check: /^PUT \/customers, new$/,
      detail: /^WARN LOCATION_UNDEFINED .* at 200/,
      why: "It is the URI of the load, as in the 202 that the same request may get."
    },
    {
      what: "`Cache-Control: public` of fixed files and `/openapi.json`",
      check: /^(GET|HEAD) \/((\.well-known|fonts|docs\/pictures)\/)?(\w+\.\w+|\{file\})/,
      detail: /^WARN STORE_PUBLIC_UNNECESSARY /,
      why: "With it, shared caches also store answers to requests with credentials."
    }
  ],
  run
}
