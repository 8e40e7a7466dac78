/** The tarball of `@restante/client`: installed in an empty project, checked, bundled and run. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { linksOf } from "../docs/pages.ts"
import { cleanUp } from "../e2e/process.ts"
import { installedWithinMs, nodeTypes, packed, type Project, projectWith,
  type Tarball } from "./package-projects.ts"

/** Promised by the documentation. */
const unpackedBytesMax = 200_000

let tarball: Tarball
let project: Project

beforeAll(async () => {
  tarball = packed("client")
  project = await projectWith(tarball.path)
}, installedWithinMs)

afterAll(cleanUp)

it("has the compiled client, its types, README and license, in 200 kB, and nothing else", () => {
  expect(tarball.files).toEqual(
    expect.arrayContaining([
      ...["LICENSE", "README.md", "package.json", "dist/index.js", "dist/index.d.ts"],
      "dist/transport/index.js"
    ])
  )
  const other = tarball.files.filter((path) => !/^dist\/[a-z/-]+\.(js|d\.ts)$/.test(path))
  expect(other).toEqual(["LICENSE", "README.md", "package.json"])
  expect(tarball.unpackedBytes).toBeLessThanOrEqual(unpackedBytesMax)
})

it("installs no other package", () => {
  expect(project.packages()).toEqual(["@restante/client"])
})

it("has a README without links to files that the package has not", () => {
  expect(linksOf("client/README.md").map(({ written }) => written)).toEqual([])
})

const document = `<changed mailbox="http://post.test/mailboxes/a" time="t"><deleted/></changed>`
const reading = `import { connect, readPush } from "@restante/client"
const { mailbox, deleted } = readPush(\`${document}\`)
console.log(typeof connect, mailbox, deleted)
`
const printed = "function http://post.test/mailboxes/a true\n"

it("is imported as an ES module", async () => {
  project.write("reading.js", reading)
  expect(await project.run("reading.js")).toBe(printed)
})

it("is bundled for browsers and for Node", async () => {
  project.write("bundled.js", reading)
  for (const platform of ["browser", "node"] as const) {
    const bundle = await project.bundle("bundled.js", platform)
    expect(await project.run(bundle), platform).toBe(printed)
  }
})

const program =
  `import { type Client, connect, type ReceivedNotification, verifyPush } from "@restante/client"
const client: Client = connect({ url: "http://post.test", account: "a", token: "t" })
export const main = async (request: Request): Promise<ReadonlyArray<string>> => {
  const { href } = await client.publish("x", { contentType: "text/plain" })
  const received: Array<ReceivedNotification> = []
  for await (const one of client.mailbox("a").watch({ signal: AbortSignal.timeout(1) })) {
    received.push(one)
  }
  const { notifications } = await verifyPush(request, ["whsec_"])
  const { body } = (await client.get(href)).response
  await client.publish(body ?? new Blob([]))
  // @ts-expect-error: a notification has recipients.
  await client.send({ description: "x" })
  return [...received, ...notifications].map(({ description }) => description)
}
`

const declarations = expect.stringMatching(/@restante\/client\/dist\/index\.d\.ts$/)

it("has types that need no other package", async () => {
  project.write("program.ts", program)
  const { errors, files } = await project.check("program.ts", {
    lib: ["ES2022", "DOM", "DOM.Iterable"],
    types: [],
    exactOptionalPropertyTypes: true,
    module: "ESNext",
    moduleResolution: "Bundler"
  })
  expect(errors).toEqual([])
  expect(files).toContainEqual(declarations)
  expect(files.filter((file) => /@types\/|\/effect\//.test(file))).toEqual([])
})

it("has types for Node without the DOM's", async () => {
  project.write("program.ts", program)
  const { errors, files } = await project.check("program.ts", nodeTypes)
  expect(errors).toEqual([])
  expect(files).toContainEqual(declarations)
  expect(files.filter((file) => file.endsWith("/lib.dom.d.ts"))).toEqual([])
})
