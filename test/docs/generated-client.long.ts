/**
 * The client of `openapi-fetch` as docs/interoperation.md makes it, in the types that
 * `openapi-typescript` generates by the page's command, with both packages from npm.
 */
import { symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { adminToken, cleanUp, type Service, start, temporaryFolder } from "../e2e/process.ts"
import { install, type Installed } from "../foreign/install.ts"
import { openapiTypescript } from "../foreign/openapi/typescript-client.ts"
import { endPrograms, runProgram } from "../foreign/program.ts"
import { blocksOf, textOf } from "./pages.ts"
import { writtenOrigin } from "./transcript.ts"

const page = "docs/interoperation.md"
const installedWithinMs = 600_000
const withinMs = 280_000

const [code = ""] = blocksOf(page).filter(({ language }) => language === "ts")
  .map(({ text }) => text)

/** A program with the page's client, which makes a mailbox and sees the 303 of a form. */
const programAt = (origin: string): string =>
  `import createClient from "openapi-fetch"
import type { paths } from "./schema.js"
${code.replaceAll(writtenOrigin, origin)}
const authorization = "Bearer ${adminToken}"
const opened = await client.POST("/mailboxes", {
  headers: { authorization },
  body: { name: "generated" }
})
const href: string | undefined = opened.data?.href
const form = await client.POST("/sign-in", {
  headers: { "Content-Type": "application/x-www-form-urlencoded" },
  body: { account: "admin", token: "${adminToken}" }
})
console.log(href, opened.response.status, form.response.status)
`

const folder = temporaryFolder()
let service: Service
let packages: Installed

const ran = async (command: string, args: ReadonlyArray<string>) => {
  const { code, errors, output } = await runProgram(command, args, { cwd: folder, withinMs })
  expect([code, errors, output]).toEqual([0, expect.any(String), expect.any(String)])
  return output
}

beforeAll(async () => {
  packages = await install(openapiTypescript.source)
  service = await start({ env: { BASE_URL: "" } })
  symlinkSync(dirname(dirname(packages.pathOf("tsc"))), join(folder, "node_modules"))
  writeFileSync(join(folder, "package.json"), "{ \"type\": \"module\" }\n")
}, installedWithinMs)

afterAll(() => {
  endPrograms()
  cleanUp()
})

it("compiles strictly in the generated types, and is answered", async () => {
  const origin = `http://localhost:${service.port}`
  const [, command = ""] = /`(openapi-typescript http:[^`]+)`/.exec(textOf(page)) ?? []
  const [name = "", ...args] = command.replace(writtenOrigin, origin).split(" ")
  await ran(packages.pathOf(name), args)
  const compilerOptions = {
    ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
    ...{ target: "es2022", module: "nodenext", lib: ["es2022", "dom", "dom.iterable"] },
    types: ["node"]
  }
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions }))
  writeFileSync(join(folder, "program.ts"), programAt(origin))
  await ran(packages.pathOf("tsc"), ["-p", folder])
  expect(await ran(process.execPath, [join(folder, "program.js")])).toBe(
    `${origin}/mailboxes/generated 201 303\n`
  )
}, 3 * withinMs)
