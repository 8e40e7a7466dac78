#!/usr/bin/env node
/**
 * `npm create restante my-app`: writes a project with one actor, its tests, one HTTP route and a
 * Dockerfile. It needs no package and no network, and writes into a new or an empty folder only.
 */
import { constants, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync,
  writeFileSync } from "node:fs"
import { basename, dirname, join, relative, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"

const here = dirname(fileURLToPath(import.meta.url))
const { version } = JSON.parse(readFileSync(join(here, "package.json"), "utf8"))

const nameCharsMax = 214
const listedFilesMax = 3

/** Exit codes of sysexits.h. */
const usageExit = 64
const failedExit = 73

/** By store: what installs it, and what a person reads of it. */
const stores = {
  memory: { about: "in memory, until the program ends", dependencies: {} },
  embedded: {
    about: "in the folder data/, for a single node",
    dependencies: { "classic-level": "^3.0.0" }
  },
  nats: {
    about: "on NATS JetStream, for as many nodes as you like",
    dependencies: {
      "@nats-io/jetstream": "^3.4.0",
      "@nats-io/kv": "^3.4.0",
      "@nats-io/transport-node": "^3.4.0"
    }
  }
}

const help = `create-restante ${version}: a project with one virtual actor

  npm create restante my-app
  npm create restante my-app -- --store nats

my-app is a new or an empty folder, and the name of the project.

  --store STORE   where the actors are kept (default: embedded)
${
  Object.entries(stores).map(([name, { about }]) =>
    `                    ${name.padEnd(10)}${about}`
  )
    .join("\n")
}
  --runtime FILE  a tarball of @restante/runtime, which the project then holds
                  (default: RESTANTE_RUNTIME, else the registry)
  --help          prints this
  --version       prints the version
`

/** What happened, to what, and what to do. */
class CreateFailure extends Error {
  constructor(message, exitCode) {
    super(message)
    this.exitCode = exitCode
  }
}

const usageFailure = (message) => new CreateFailure(message, usageExit)
const writeFailure = (message) => new CreateFailure(message, failedExit)

const seeHelp = "`npm create restante -- --help` lists what there is"

/** The folder and the options of the command line. Throws a CreateFailure. */
const readArguments = (args, environment) => {
  const options = {
    store: { type: "string", default: "embedded" },
    runtime: { type: "string", default: environment.RESTANTE_RUNTIME },
    help: { type: "boolean", short: "h" },
    version: { type: "boolean" }
  }
  let parsed
  try {
    parsed = parseArgs({ args, options, allowPositionals: true })
  } catch (error) {
    throw usageFailure(`the arguments are not understood: ${error.message}. ${seeHelp}`)
  }
  const { positionals: [folder, ...more], values } = parsed
  if (values.help || values.version) return values
  if (folder === undefined || folder === "") {
    throw usageFailure("the project has no name: add one, as in `npm create restante my-app`")
  }
  if (more.length > 0) {
    throw usageFailure(`there is more than one name (${[folder, ...more].join(", ")}): give one`)
  }
  if (!Object.hasOwn(stores, values.store)) {
    const names = Object.keys(stores).join(", ")
    throw usageFailure(`${values.store} is no store: --store takes one of ${names}`)
  }
  return { ...values, folder: resolve(folder) }
}

/** The name of a project in this folder. Throws unless npm takes it as the name of a package. */
const nameOf = (folder) => {
  const name = basename(folder)
  const isTaken = ["node_modules", "favicon.ico"].includes(name)
  if (!isTaken && /^[a-z0-9][a-z0-9._-]*$/.test(name) && name.length <= nameCharsMax) return name
  throw usageFailure(
    `"${name}" cannot be the name of a project: npm takes lower-case letters, digits, "-", "_" ` +
      `and ".", ${nameCharsMax} at most, a letter or digit first, and no name of its own. ` +
      "Choose a name such as my-app"
  )
}

/** What an error of the file system means, and what helps. */
const reasonOf = ({ code, message }) => {
  if (["EACCES", "EPERM"].includes(code)) {
    return "you may not write there. Choose a folder of yours, or have its permissions changed"
  }
  if (code === "EROFS") return "the file system is read-only. Choose another folder"
  if (code === "ENOSPC") return "the disk is full. Free some space, and try again"
  if (code === "ENOTDIR" || code === "EEXIST") {
    return "a part of the path is a file. Choose another folder"
  }
  return `${message}. Choose another folder`
}

const attempt = (what, write) => {
  try {
    return write()
  } catch (error) {
    throw writeFailure(`${what}: ${reasonOf(error)}`)
  }
}

/** Throws unless the folder is missing, empty, or a new repository of git. */
const assertEmpty = (folder) => {
  if (!existsSync(folder)) return
  const found = attempt(`${folder} cannot be read`, () => readdirSync(folder))
    .filter((name) => name !== ".git")
  if (found.length === 0) return
  const listed = found.slice(0, listedFilesMax).join(", ")
  const names = found.length > listedFilesMax ? `${listed}, …` : listed
  throw writeFailure(
    `${folder} has files already (${names}), and nothing was written. Choose another name, or ` +
      "empty the folder"
  )
}

const gzipMagic = "1f8b"

const isGzip = (file) =>
  attempt(`${file} cannot be read`, () => readFileSync(file)).subarray(0, 2).toString("hex") ===
    gzipMagic

/** The tarball of the runtime, or undefined: then npm gets it from its registry. */
const tarballOf = (path) => {
  if (path === undefined || path === "") return undefined
  const file = resolve(path)
  if (file.endsWith(".tgz") && existsSync(file) && isGzip(file)) return file
  throw usageFailure(
    `${file} is no tarball of @restante/runtime: pack it by \`npm pack --workspace runtime\` ` +
      "in a clone of restante, and give the path of the .tgz file"
  )
}

/** The manifest of the project: the template's, with its name and with what it needs. */
const manifestOf = (name, store, tarball) => {
  const { dependencies, ...manifest } = JSON.parse(
    readFileSync(join(here, "template/package.json"), "utf8")
  )
  // The packages of this repository have one version.
  const runtime = tarball === undefined ? `^${version}` : `file:${basename(tarball)}`
  const needed = { ...dependencies, ...stores[store].dependencies, "@restante/runtime": runtime }
  const sorted = Object.entries(needed).sort(([one], [other]) => one < other ? -1 : 1)
  return { ...manifest, name, dependencies: Object.fromEntries(sorted) }
}

/** npm leaves files of these names out of a package. */
const namesInProject = { gitignore: ".gitignore", dockerignore: ".dockerignore" }

/** The texts of the project's files, by their paths. */
const filesOf = (name, store, tarball) => {
  const template = join(here, "template")
  const files = new Map()
  const entries = readdirSync(template, { recursive: true, withFileTypes: true })
  for (const entry of entries.filter((one) => one.isFile())) {
    const path = join(entry.parentPath, entry.name)
    const inProject = join(
      dirname(relative(template, path)),
      namesInProject[entry.name] ?? entry.name
    )
    files.set(inProject, readFileSync(path, "utf8").replaceAll("{{name}}", name))
  }
  files.set("package.json", `${JSON.stringify(manifestOf(name, store, tarball), null, 2)}\n`)
  files.set("src/store.ts", readFileSync(join(here, `stores/${store}.ts`), "utf8"))
  return files
}

/** Writes the project; removes a new folder again when that fails. */
const writeProject = (folder, files, tarball) => {
  const isNew = !existsSync(folder)
  const first = attempt(`${folder} cannot be made`, () => mkdirSync(folder, { recursive: true }))
  try {
    attempt(`the project cannot be written to ${folder}`, () => {
      for (const [path, text] of files) {
        mkdirSync(dirname(join(folder, path)), { recursive: true })
        writeFileSync(join(folder, path), text, { flag: "wx" })
      }
      if (tarball !== undefined) {
        copyFileSync(tarball, join(folder, basename(tarball)), constants.COPYFILE_EXCL)
      }
    })
  } catch (failure) {
    if (isNew) rmSync(first ?? folder, { recursive: true, force: true })
    throw failure
  }
}

const create = ({ folder, runtime, store }) => {
  const name = nameOf(folder)
  const tarball = tarballOf(runtime)
  assertEmpty(folder)
  writeProject(folder, filesOf(name, store, tarball), tarball)
  const way = relative(process.cwd(), folder)
  const hint = tarball === undefined
    ? "If npm does not find @restante/runtime, create the project again with --runtime FILE.\n\n"
    : ""
  return `${hint}${name} is ready. Its actors are kept ${stores[store].about}. Next:

  ${way === "" ? "" : `cd ${way} && `}npm install
  npm run dev
`
}

try {
  const options = readArguments(process.argv.slice(2), process.env)
  process.stdout.write(options.help ? help : options.version ? `${version}\n` : create(options))
} catch (error) {
  if (!(error instanceof CreateFailure)) throw error
  process.stderr.write(`create-restante: ${error.message}.\n`)
  process.exitCode = error.exitCode
}
