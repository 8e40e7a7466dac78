/** What the build writes about the contents of the program: its packages and native binaries. */
import { createHash } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { describe, expect, it } from "vitest"
import { at, dockerfile, listAt, root, textOf, treeAt, wordAt } from "./sources.ts"
import { run } from "./tools.ts"

const sbomFile = "dist/sbom.cdx.json"
const checksumsFile = "dist/native-binaries.sha256"

const json = (path: string): unknown => JSON.parse(textOf(path))

const sbom = json(sbomFile)
const components = listAt(sbom, "components")
const ofType = (type: string) => components.filter((one) => at(one, "type") === type)

/** The packages of development whose files are a part of the program. */
const copied = ["@fontsource-variable/inter", "lucide-static", "modern-normalize", "uplot"]

/** Packages of the lock by their folders, without development's and those of the workspaces. */
const wanted = Object.entries(treeAt(json("package-lock.json"), "packages"))
  .filter(([path, entry]) =>
    path.startsWith("node_modules/") &&
    at(entry, "link") !== true &&
    (at(entry, "dev") !== true || copied.some((name) => path === `node_modules/${name}`))
  )

const packageOf = (path: string, entry: unknown): string =>
  `${at(entry, "name") ?? path.split("node_modules/").at(-1)} ${wordAt(entry, "version")}`

const nameOf = (one: unknown): string => {
  const group = at(one, "group")
  return `${group === undefined ? "" : `${String(group)}/`}${wordAt(one, "name")} ${
    wordAt(one, "version")
  }`
}

const checksums = textOf(checksumsFile).trim().split("\n").map((line) => {
  const [sum = "", file = ""] = line.split("  ")
  return { sum, file }
})

describe("the list of packages", () => {
  it("is CycloneDX of this version of the program", () => {
    const { name, version } = treeAt(json("package.json"))
    expect(sbom).toMatchObject({ bomFormat: "CycloneDX", specVersion: "1.6", version: 1 })
    expect(at(sbom, "metadata", "component")).toMatchObject({ type: "application", name, version })
    expect(wordAt(sbom, "serialNumber"))
      .toMatch(/^urn:uuid:[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
  })

  it("has every package that the lock installs for production, and no other", () => {
    const names = ofType("library").map(nameOf)
    expect(wanted.length).toBeGreaterThan(50)
    expect(new Set(names).size).toBe(names.length)
    expect(names.toSorted()).toEqual(
      [...new Set(wanted.map(([path, entry]) => packageOf(path, entry)))].toSorted()
    )
    for (const [path, entry] of wanted) {
      const one = ofType("library").find((found) => nameOf(found) === packageOf(path, entry))
      // The lock has no hash of some packages of other platforms.
      const digest = at(entry, "integrity")
      const isInstalled = existsSync(join(root, path))
      expect([path, digest !== undefined || !isInstalled]).toEqual([path, true])
      const content = Buffer.from(String(digest).replace("sha512-", ""), "base64").toString("hex")
      const hashes = digest === undefined ? undefined : [{ alg: "SHA-512", content }]
      expect([path, at(one, "hashes")]).toEqual([path, hashes])
      expect(wordAt(one, "purl")).toMatch(/^pkg:npm\/(%40[\w.-]+\/)?[\w.-]+@[\w.-]+$/)
    }
  })

  it("has what the program needs directly, and refers to nothing that it does not list", () => {
    const known = new Set(components.map((one) => wordAt(one, "bom-ref")))
    const edges = listAt(sbom, "dependencies")
    const own = wordAt(sbom, "metadata", "component", "bom-ref")
    for (const one of edges) {
      const ref = wordAt(one, "ref")
      expect([ref, ref === own || known.has(ref)]).toEqual([ref, true])
      for (const needed of listAt(one, "dependsOn")) expect(known).toContain(needed)
    }
    const direct = edges.find((one) => wordAt(one, "ref") === own)
    const { dependencies, optionalDependencies } = treeAt(json("package.json"))
    const names = Object.keys({ ...Object(dependencies), ...Object(optionalDependencies) })
    expect(listAt(direct, "dependsOn")).toHaveLength(names.length + copied.length)
    expect(listAt(direct, "dependsOn").join(" ")).toContain("pkg:npm/%40fontsource-variable/inter@")
    expect(listAt(direct, "dependsOn").join(" ")).toContain("pkg:npm/modern-normalize@")
    expect(listAt(direct, "dependsOn").join(" ")).toContain("pkg:npm/uplot@")
    expect(listAt(direct, "dependsOn").join(" ")).toMatch(/undici@.* .*uws|uwsjs\/core@.*undici@/)
  })

  it("is the same for the same sources", () => {
    const before = [textOf(sbomFile), textOf(checksumsFile)]
    const module = JSON.stringify(pathToFileURL(join(root, "deploy/generate/sbom.mjs")))
    const code = `import { writeSbom } from ${module}; writeSbom()`
    expect(run(process.execPath, ["--input-type=module", "-e", code])).toMatchObject({ code: 0 })
    expect([textOf(sbomFile), textOf(checksumsFile)]).toEqual(before)
  })
})

describe("the list of native binaries", () => {
  it("has the checksum of each native binary", () => {
    const sumOf = (file: string) =>
      createHash("sha256").update(readFileSync(join(root, file))).digest("hex")
    for (const { file, sum } of checksums) expect([file, sumOf(file)]).toEqual([file, sum])
    const listed = ofType("file").map((one) => ({
      sum: wordAt(one, "hashes", 0, "content"),
      file: wordAt(one, "name")
    }))
    expect(listed).toEqual(checksums)
  })

  it("has those that this machine loads", () => {
    const { arch, platform, report, versions } = process
    const isMusl = at(report?.getReport(), "header", "glibcVersionRuntime") === undefined
    const loaded = [
      `node_modules/@uwsjs/${platform}-${arch}-${versions.node.split(".")[0]}/uws.node`,
      `node_modules/@nxtedition/rocksdb/prebuilds/${platform}-${arch}/@nxtedition+rocksdb.node`,
      `node_modules/classic-level/prebuilds/${platform}-${arch}/classic-level${
        isMusl ? ".musl" : ""
      }.node`
    ].filter((file) => existsSync(join(root, file)))
    expect(loaded.length).toBeGreaterThan(1)
    for (const file of loaded) expect(checksums.map((one) => one.file)).toContain(file)
  })

  it("is in the image, whose build compares the binaries", () => {
    const last = dockerfile().findLastIndex(({ name }) => name === "FROM")
    const steps = dockerfile().slice(last).map(({ name, rest }) => `${name} ${rest}`)
    const check = steps.indexOf(`RUN sha256sum --check --ignore-missing --quiet ${checksumsFile}`)
    expect(check).toBeGreaterThan(steps.indexOf("COPY --from=build /app/dist dist"))
    expect(check).toBeGreaterThan(
      steps.indexOf("COPY --from=modules /app/node_modules node_modules")
    )
  })
})
