/** openapi-python-client: generates a client, which then calls every operation. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../../bench/process.ts"
import type { Bench, Finding, ForeignSuite } from "../suite.ts"
import { prepareBrokenMailboxes, quarantineBrokenMailboxes } from "./broken-mailboxes.ts"
import { type Described, operationCalls, uncalled } from "./operation-calls.ts"

const withinMs = 300_000

/** That of the packaged client. */
const configurationFile = join(root, "client/python/generator.json")

/** Generates a client of the document at `uri`; passes unless the generator writes a `fault`. */
const generate = async (
  { folder, run }: Bench,
  check: string,
  uri: string,
  name: string,
  fault: RegExp
): Promise<Finding> => {
  const { code, errors, output } = await run("openapi-python-client", [
    "generate",
    ...["--url", uri],
    ...["--config", configurationFile],
    ...["--meta", "none"],
    ...["--output-path", join(folder, name)]
  ], { withinMs })
  const said = `${output}${errors}`
  if (code !== 0) {
    throw new Error(`openapi-python-client ended with ${code}: ${said.slice(0, 2000)}`)
  }
  const isPassed = !fault.test(said)
  return isPassed ? { check, isPassed } : { check, isPassed, detail: said.slice(0, 2000) }
}

const run = async (bench: Bench): Promise<ReadonlyArray<Finding>> => {
  const { folder, origin, token } = bench
  const whole = `${origin}/openapi.json`
  const uri = `${whole}?media=json`
  const findings = [
    await generate(
      bench,
      "generates a client without a warning",
      uri,
      "generated",
      /warning|error|unable|skipp/i
    ),
    // It warns of each type that it does not know, such as XML.
    await generate(
      bench,
      "generates every operation of the whole document",
      whole,
      "whole",
      /will not be generated|unable to (parse|process)/i
    )
  ]
  // The document has this form.
  const document = await (await fetch(uri)).json() as Described
  const calls = operationCalls(document)
  const callsFile = join(folder, "calls.json")
  writeFileSync(callsFile, JSON.stringify(calls))
  await quarantineBrokenMailboxes(bench)
  const script = `${root}test/foreign/openapi/call_operations.py`
  const args = [script, folder, origin, token, callsFile]
  const called = await bench.run("python", args, { withinMs })
  if (called.code !== 0) throw new Error(`call_operations.py failed: ${called.errors}`)
  return [
    ...findings,
    ...uncalled(document, calls).map((check) => ({ check, isPassed: false, detail: "not called" })),
    // One finding for each call.
    ...JSON.parse(called.output) as ReadonlyArray<Finding>
  ]
}

export const openapiPythonClient: ForeignSuite = {
  name: "openapi-python-client",
  checks: "a generated client of `/openapi.json?media=json` calls every operation, and parses each "
    + "answer into its type",
  source: { registry: "PyPI", name: "openapi-python-client", version: "0.29.1" },
  prepare: prepareBrokenMailboxes,
  reasons: [],
  run
}
