/** Reads the files beside the program: manifests, the compose file, the Dockerfile; copies all. */
import { execFileSync } from "node:child_process"
import { cpSync, existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseAllDocuments } from "yaml"

export const root = fileURLToPath(new URL("../..", import.meta.url))

/** The paths of the files that git tracks, which a clone has. */
export const trackedFiles = (): ReadonlyArray<string> =>
  execFileSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8" }).split("\0")
    .filter((path) => path !== "" && existsSync(join(root, path)))

/** Copies what a clone has into a new folder, without git's own; returns the folder. */
export const copySources = (into: string): string => {
  for (const path of trackedFiles()) {
    cpSync(join(root, path), join(into, path), { recursive: true, verbatimSymlinks: true })
  }
  return into
}

export const textOf = (path: string): string => readFileSync(join(root, path), "utf8")

const isTree = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

/** The value at this path of names or numbers; undefined where there is none. */
export const at = (value: unknown, ...path: ReadonlyArray<string | number>): unknown =>
  path.reduce((inner, name) => isTree(inner) ? inner[String(name)] : undefined, value)

export const listAt = (value: unknown, ...path: ReadonlyArray<string | number>) => {
  const found = at(value, ...path)
  if (!Array.isArray(found)) throw new Error(`${path.join(".")} is no list`)
  const list: ReadonlyArray<unknown> = found
  return list
}

export const treeAt = (value: unknown, ...path: ReadonlyArray<string | number>) => {
  const found = at(value, ...path)
  if (!isTree(found)) throw new Error(`${path.join(".")} is no mapping`)
  return found
}

export const wordAt = (value: unknown, ...path: ReadonlyArray<string | number>): string => {
  const found = at(value, ...path)
  if (typeof found !== "string") throw new Error(`${path.join(".")} is no text`)
  return found
}

/** The documents of a YAML text, which is of `path`. Throws for anything but plain YAML. */
export const yamlIn = (text: string, path: string): ReadonlyArray<unknown> => {
  const parsed = parseAllDocuments(text, { merge: true })
  if (!Array.isArray(parsed)) throw new Error(`${path} is empty`)
  return parsed.map((one) => {
    const [wrong] = [...one.errors, ...one.warnings]
    if (wrong !== undefined) throw new Error(`${path}: ${wrong.message}`)
    const value: unknown = one.toJS()
    return value
  })
}

/** The documents of a YAML file. */
export const yamlOf = (path: string): ReadonlyArray<unknown> => yamlIn(textOf(path), path)

type Environment = Readonly<Record<string, string>>

/** Substitutes `${NAME}`, `${NAME:-default}` and `${NAME:?message}`, as compose does. */
const filled = (text: string, environment: Environment): string =>
  text.replace(/\$\{(\w+)(?::([-?])([^}]*))?\}/g, (_, name: string, kind?: string, rest = "") => {
    const value = environment[name] ?? ""
    if (value === "" && kind === "?") throw new Error(`${name} ${rest}`)
    return value === "" && kind === "-" ? rest : value
  })

/** The compose file, with these variables. */
export const compose = (environment: Environment) => {
  const [file] = yamlOf("deploy/manifests/compose.yaml")
  const services = treeAt(file, "services")
  return {
    services,
    networks: treeAt(file, "networks"),
    names: (prefix: string) => Object.keys(services).filter((name) => name.startsWith(prefix)),
    environmentOf: (service: string): Environment =>
      Object.fromEntries(
        Object.entries(treeAt(services, service, "environment"))
          .map(([name, value]) => [name, filled(String(value), environment)])
      )
  }
}

/** One instruction of a Dockerfile. */
export interface Instruction {
  readonly name: string
  readonly rest: string
}

export const dockerfile = (): ReadonlyArray<Instruction> =>
  textOf("deploy/manifests/Dockerfile").split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const [name = ""] = line.split(" ", 1)
      return { name, rest: line.slice(name.length + 1) }
    })

/** The last value of an instruction that overrides earlier ones. */
export const lastOf = (name: string): string => {
  const found = dockerfile().findLast((one) => one.name === name)
  if (found === undefined) throw new Error(`the Dockerfile has no ${name}`)
  return found.rest
}
