#!/usr/bin/env node
/**
 * `npm run build:go`: writes the Go module of `client/go` to `dist/go`, with the client that
 * oapi-codegen generates from the OpenAPI document of the compiled service.
 */
import { copyFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { clientDocument } from "./client-document.mjs"
import { inRoot, run } from "../prepare.mjs"

const folder = "dist/go"
const generator = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"
/** Programs need none of these: HEAD is GET without a body, OPTIONS lists methods. */
const leftOut = ["head", "options"]
const formType = "application/x-www-form-urlencoded"

/** Whether an operation is that of a form of a page; programs send JSON. */
const isOfForm = ({ requestBody }) =>
  requestBody !== undefined && Object.keys(requestBody.content).every((type) => type === formType)

/** The operation with its successes. The client makes one error of all problems. */
const withSuccesses = (operation) => ({
  ...operation,
  responses: Object.fromEntries(
    Object.entries(operation.responses).filter(([status]) => status.startsWith("2"))
  )
})

const partOf = ([name, part]) => {
  if (name === "parameters") return [[name, part]]
  return leftOut.includes(name) || isOfForm(part) ? [] : [[name, withSuccesses(part)]]
}

const pathOf = ([path, item]) => [path, Object.fromEntries(Object.entries(item).flatMap(partOf))]

const document = clientDocument()
const paths = Object.fromEntries(Object.entries(document.paths).map(pathOf))

rmSync(inRoot(folder), { recursive: true, force: true })
mkdirSync(inRoot(`${folder}/generated`), { recursive: true })
writeFileSync(inRoot(`${folder}/openapi.json`), JSON.stringify({ ...document, paths }))
for (const file of readdirSync(inRoot("client/go"))) {
  copyFileSync(inRoot(`client/go/${file}`), inRoot(`${folder}/${file}`))
}
copyFileSync(inRoot("LICENSE"), inRoot(`${folder}/LICENSE`))

const output = `${folder}/generated/client.go`
const what = ["-generate", "types,client", "-package", "generated", "-o", output]
const isBuilt = run("go", ["run", generator, ...what, `${folder}/openapi.json`])
  && run("go", ["-C", folder, "mod", "tidy"])
if (!isBuilt) {
  process.stderr.write(
    "The Go client was not generated; see above. It needs Go 1.24 or later in PATH, and the proxy "
      + "of Go modules.\n"
  )
}
process.exitCode = isBuilt ? 0 : 1
