/** Installs and builds on a fresh clone. It uses plain Node, since no package is installed yet. */
import { spawnSync } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync,
  utimesSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { checksumsFile, sbomFile, writeSbom } from "./generate/sbom.mjs"

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const sourceFolders = ["runtime", "actors", "http", "client", "deploy"]
const builtMark = "dist/.built"
const compiledMain = "dist/deploy/main.js"
const bundleFolder = "dist/bin"

/**
 * The bundle of the service and its command line. Without it a start reads 600 modules, which
 * takes twice as long as the rest of the start.
 */
export const bundledMain = `${bundleFolder}/restante.js`

/** The manual page of the whole command line; those of its commands are beside it. */
export const manualFile = "dist/man/restante.1"

/** The documentation, rendered for `/docs` of the service. */
export const docsFile = "dist/docs/site.json"

const docsBuilder = "deploy/generate/docs.mjs"

/** A child process runs it, since it needs packages that a fresh clone has not installed. */
const packagesWriter = "deploy/generate/packages.mjs"

/** The folders whose README.md is a page of `/docs`, too. */
export const documentedModules = ["runtime", "actors", "http", "client", "deploy"]

/** Modules with binaries, which Node loads from node_modules. */
const external = ["uws-node-20-22", "uws-node-24-26", "@nxtedition/rocksdb", "classic-level"]

/** An absolute path of the project. */
export const inRoot = (path) => join(root, path)

const modifiedMs = (path) => existsSync(inRoot(path)) ? statSync(inRoot(path)).mtimeMs : 0

/** Runs a command in the project's folder, its output on standard error; true when it succeeded. */
export const run = (command, args) => {
  const stdio = ["ignore", 2, 2]
  const { error, status } = spawnSync(command, args, { cwd: root, stdio })
  if (error !== undefined) process.stderr.write(`${command}: ${error.message}\n`)
  return status === 0
}

const required = (done, what) => {
  if (done) return
  process.stderr.write(`${what} failed; see above.\n`)
  process.exit(1)
}

/** Whether the lock has a binary of the HTTP server for this Node that is not installed. */
const lacksServer = () => {
  const { arch, platform, versions } = process
  const name = `node_modules/@uwsjs/${platform}-${arch}-${versions.node.split(".")[0]}`
  if (existsSync(inRoot(name))) return false
  return name in JSON.parse(readFileSync(inRoot("package-lock.json"), "utf8")).packages
}

/** `npm ci` when node_modules is missing, older than the lock file, or of another Node. */
export const installIfStale = () => {
  const installedMs = modifiedMs("node_modules/.package-lock.json")
  if (installedMs >= modifiedMs("package-lock.json") && !lacksServer()) return
  process.stderr.write("Installing packages (npm ci) …\n")
  const quiet = ["--include=dev", "--no-audit", "--no-fund", "--loglevel=error"]
  required(run("npm", ["ci", ...quiet]), "npm ci")
}

const newestMs = (folder, names) => {
  let newest = 0
  for (const entry of readdirSync(inRoot(folder), { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`
    if (entry.name === "dist") continue // of a package
    if (entry.isDirectory()) newest = Math.max(newest, newestMs(path, names))
    else if (names.test(entry.name)) newest = Math.max(newest, modifiedMs(path))
  }
  return newest
}

const newestSourceMs = (folder) => newestMs(folder, /\.(ts|json)$/)

const newestPageMs = () =>
  Math.max(
    modifiedMs(docsBuilder),
    newestMs("docs", /\.(md|svg|webp)$/),
    ...documentedModules.map((folder) => modifiedMs(`${folder}/README.md`))
  )

const isBuilt = () => {
  const builtMs = modifiedMs(builtMark)
  const settings = ["cluster.config.ts", "tsconfig.json", "tsconfig.base.json", "package-lock.json"]
  const outputs = [bundledMain, checksumsFile, docsFile, manualFile, sbomFile]
  const inputs = [...sourceFolders.map(newestSourceMs), newestPageMs(), ...settings.map(modifiedMs)]
  return outputs.every((path) => existsSync(inRoot(path))) && inputs.every((ms) => ms <= builtMs)
}

/** Bundles the output of `tsc -b` when that is newer; true when it succeeded. */
export const bundleIfStale = () => {
  const compiledMs = Math.max(
    modifiedMs("dist/cluster.config.js"),
    ...sourceFolders.map((folder) => newestMs(`dist/${folder}`, /\.js$/))
  )
  if (modifiedMs(bundledMain) >= compiledMs) return true
  const folder = `${bundleFolder}.${process.pid}`
  const externals = external.flatMap((name) => ["--external", name])
  const form = ["--platform", "node", "--format", "esm", "--log-level", "warn"]
  const names = ["--dir", inRoot(folder), "--entry-file-names", "restante.js"]
  const rolldown = inRoot("node_modules/rolldown/bin/cli.mjs")
  const args = [rolldown, inRoot(compiledMain), ...form, ...names, ...externals]
  if (!run(process.execPath, args)) return false
  chmodSync(inRoot(`${folder}/restante.js`), 0o755)
  // A process that starts meanwhile has read the whole old bundle, or finds the whole new one.
  rmSync(inRoot(bundleFolder), { recursive: true, force: true })
  renameSync(inRoot(folder), inRoot(bundleFolder))
  return true
}

/** Renders the documentation when a page is newer; true when it succeeded. */
export const renderDocsIfStale = () =>
  modifiedMs(docsFile) > newestPageMs() || run(process.execPath, [inRoot(docsBuilder)])

/**
 * Runs `tsc -b` for a project, bundles the result, renders the documentation, and writes what the
 * program consists of; true when all succeeded. The whole project, `.`, has the packages of the
 * workspaces, too.
 */
export const build = (project) => {
  const startedAt = new Date()
  if (!run(process.execPath, [inRoot("node_modules/typescript/bin/tsc"), "-b", project])) {
    return false
  }
  mkdirSync(inRoot("dist"), { recursive: true })
  if (!bundleIfStale() || !renderDocsIfStale()) return false
  writeSbom()
  if (!run(process.execPath, [inRoot("deploy/generate/manual.mjs")])) return false
  if (project === "." && !run(process.execPath, [inRoot(packagesWriter)])) return false
  writeFileSync(inRoot(builtMark), "")
  utimesSync(inRoot(builtMark), startedAt, startedAt) // an edit during the build makes it stale
  return true
}

/** Builds the service when dist is missing or older than a source. */
export const buildIfStale = () => {
  if (isBuilt()) return
  process.stderr.write("Building (tsc -b deploy, rolldown) …\n")
  required(build("deploy"), "The build")
}
