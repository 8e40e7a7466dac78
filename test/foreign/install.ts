/**
 * Installs the packages of a suite from their registry, at exact versions, into a folder of the
 * cache. A registry or an interpreter that is missing fails with what to do: nothing is skipped.
 */
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../bench/process.ts"
import { runProgram } from "./program.ts"
import type { Source } from "./suite.ts"

const cache = join(root, "node_modules/.cache/foreign")
const installWithinMs = 600_000

/** The installed packages of a suite. */
export interface Installed {
  /** The path of a program that they brought. */
  readonly pathOf: (program: string) => string
}

const required = async (
  command: string,
  args: ReadonlyArray<string>,
  folder: string,
  advice: string
): Promise<void> => {
  const options = { cwd: folder, withinMs: installWithinMs }
  const { code, errors } = await runProgram(command, args, options).catch((error: unknown) => ({
    code: undefined,
    errors: String(error)
  }))
  if (code !== 0) {
    throw new Error(`${command} ${args.join(" ")} failed.\n${errors.slice(-2000)}\n${advice}`)
  }
}

/** The form in which pip takes `name@version`. */
const pinned = (one: string): string => one.replace("@", "==")

const installers: Readonly<
  Record<
    Source["registry"],
    {
      readonly programs: string
      readonly install: (folder: string, packages: ReadonlyArray<string>) => Promise<void>
    }
  >
> = {
  npm: {
    programs: "node_modules/.bin",
    install: async (folder, packages) => {
      // Without a package of its own npm would install into the project.
      writeFileSync(join(folder, "package.json"), "{ \"private\": true }\n")
      const quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
      const advice = "It needs npm and its registry."
      await required("npm", ["install", "--save-exact", ...quiet, ...packages], folder, advice)
    }
  },
  PyPI: {
    programs: "bin",
    install: async (folder, packages) => {
      const advice = "It needs Python 3 with venv (Debian's python3-venv) and the registry of pip."
      await required("python3", ["-m", "venv", "."], folder, advice)
      const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
      await required("bin/python", [...pip, ...packages.map(pinned)], folder, advice)
    }
  }
}

/** Installs the packages of a source, unless the cache has them. */
export const install = async (
  { beside = [], name, registry, version }: Source
): Promise<Installed> => {
  const packages = [`${name}@${version}`, ...beside]
  const folder = join(cache, packages.join("+").replaceAll("/", "-"))
  const { install, programs } = installers[registry]
  const mark = join(folder, ".installed")
  if (!existsSync(mark)) {
    // What an interrupted installation left is not complete.
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true })
    await install(folder, packages)
    writeFileSync(mark, "")
  }
  return { pathOf: (program) => join(folder, programs, program) }
}
