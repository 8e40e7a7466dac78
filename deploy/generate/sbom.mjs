/**
 * What the program consists of, for audits: a list of its packages (CycloneDX 1.6), and the
 * checksums of its native binaries. Both come from package-lock.json and node_modules alone, so the
 * same sources give the same files. `npm sbom --omit dev` is not used: it omits packages that
 * development needs too, such as undici.
 */
import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../", import.meta.url))

/** The list of packages, and of the binaries in them. */
export const sbomFile = "dist/sbom.cdx.json"

/** The checksums of the binaries, for `sha256sum --check` in the program's folder. */
export const checksumsFile = "dist/native-binaries.sha256"

const modules = "node_modules/"

const sha256 = (data) => createHash("sha256").update(data).digest("hex")

const nameOf = (path, { name }) => name ?? path.slice(path.lastIndexOf(modules) + modules.length)

const purlOf = (name, version) => `pkg:npm/${name.replace(/^@/, "%40")}@${version}`

const licensesOf = ({ license }) => {
  if (license === undefined) return {}
  const isExpression = / (AND|OR|WITH) /.test(license)
  return { licenses: [isExpression ? { expression: license } : { license: { id: license } }] }
}

/** `sha512-<base64>` of the lock as CycloneDX writes it. */
const hashesOf = ({ integrity }) => {
  const [, algorithm, digest] = /^sha(\d+)-(\S+)$/.exec(integrity ?? "") ?? []
  if (algorithm === undefined) return {}
  const content = Buffer.from(digest, "base64").toString("hex")
  return { hashes: [{ alg: `SHA-${algorithm}`, content }] }
}

/** Packages of development with files that are a part of the program, which the pages use. */
const copiedPackages = [
  "@fontsource-variable/inter",
  "lucide-static",
  "modern-normalize",
  "uplot"
]

/**
 * The packages of the lock that the program may need at run time, by their folders. Those of the
 * workspaces are its own code.
 */
const runtimePackages = (lock) =>
  Object.entries(lock.packages)
    .filter(([path, entry]) => path.startsWith(modules) && entry.link !== true)
    .map(([path, entry]) => ({ path, entry, name: nameOf(path, entry) }))
    .filter(({ entry, name }) => entry.dev !== true || copiedPackages.includes(name))
    .map((one) => ({ ...one, purl: purlOf(one.name, one.entry.version) }))

const componentOf = ({ entry, name, purl }) => {
  const [, group, short] = /^(@[^/]+)\/(.+)$/.exec(name) ?? []
  return {
    type: "library",
    "bom-ref": purl,
    ...group === undefined ? { name } : { group, name: short },
    version: entry.version,
    scope: entry.optional === true || entry.devOptional === true ? "optional" : "required",
    ...hashesOf(entry),
    ...licensesOf(entry),
    purl
  }
}

/** The package that Node finds by this name from a folder. */
const resolved = (byPath, from, name) => {
  for (let folder = from;;) {
    const found = byPath.get(`${folder === "" ? "" : `${folder}/`}${modules}${name}`)
    if (found !== undefined || folder === "") return found
    folder = folder.includes(`/${modules}`)
      ? folder.slice(0, folder.lastIndexOf(`/${modules}`))
      : ""
  }
}

/** What each package needs of the others. */
const dependenciesOf = (packages, ref, entry, from) => {
  const names = Object.keys({
    ...entry.dependencies,
    ...entry.optionalDependencies,
    ...entry.peerDependencies
  })
  const found = names.flatMap((name) => resolved(packages, from, name)?.purl ?? [])
  return { ref, dependsOn: [...new Set(found)].sort() }
}

/** The files below a folder that Node loads as native code; nested packages are their own. */
const nativeFiles = (folder) =>
  readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) return entry.name === "node_modules" ? [] : nativeFiles(path)
    return /\.(node|so|dylib|dll)$/.test(entry.name) ? [path] : []
  })

/** The native binaries of the installed packages, sorted by path. */
const binariesOf = (packages) =>
  packages.filter(({ path }) => existsSync(join(root, path)))
    .flatMap(({ path, purl }) => nativeFiles(path).map((file) => ({ file, purl })))
    .map((one) => ({ ...one, sha256: sha256(readFileSync(join(root, one.file))) }))
    .sort((one, other) => one.file < other.file ? -1 : 1)

const binaryComponentOf = ({ file, sha256: content }) => ({
  type: "file",
  "bom-ref": `file:${file}`,
  name: file,
  hashes: [{ alg: "SHA-256", content }]
})

const uniqueBy = (key, list) => [...new Map(list.map((one) => [key(one), one])).values()]

/** The same for the same content: a UUID of version 8 (RFC 9562). */
const serialNumberOf = (content) => {
  const hex = sha256(content)
  const variant = (Number.parseInt(hex[16], 16) & 3 | 8).toString(16)
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`]
  return `urn:uuid:${[...parts, `${variant}${hex.slice(17, 20)}`, hex.slice(20, 32)].join("-")}`
}

/** A test may read the file meanwhile, so an unchanged one stays as it is. */
const write = (path, text) => {
  const whole = join(root, path)
  if (!existsSync(whole) || readFileSync(whole, "utf8") !== text) writeFileSync(whole, text)
}

/** Writes both files into dist. */
export const writeSbom = () => {
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"))
  const own = lock.packages[""]
  const ref = purlOf(own.name, own.version)
  const packages = runtimePackages(lock)
  const byPath = new Map(packages.map((one) => [one.path, one]))
  const binaries = binariesOf(packages)
  const needs = packages.map(({ entry, path, purl }) => dependenciesOf(byPath, purl, entry, path))
  const copied = Object.fromEntries(copiedPackages.map((name) => [name, "*"]))
  const ownNeeds = {
    ...own,
    dependencies: { ...own.dependencies, ...copied },
    peerDependencies: {}
  }
  const content = {
    metadata: {
      component: {
        ...{ type: "application", "bom-ref": ref, name: own.name, version: own.version },
        ...licensesOf(own),
        purl: ref
      }
    },
    components: [
      ...uniqueBy(({ purl }) => purl, packages).map(componentOf),
      ...binaries.map(binaryComponentOf)
    ],
    dependencies: uniqueBy((one) => one.ref, [
      dependenciesOf(byPath, ref, ownNeeds, ""),
      ...needs
    ])
  }
  const head = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: serialNumberOf(JSON.stringify(content)),
    version: 1
  }
  write(sbomFile, `${JSON.stringify({ ...head, ...content }, null, 2)}\n`)
  const lines = binaries.map(({ file, sha256: sum }) => `${sum}  ${file}\n`)
  write(checksumsFile, lines.join(""))
}
