/** The packages of the workspaces, packed, and empty projects that install the tarballs. */
import { build } from "esbuild"
import { execFile, execFileSync } from "node:child_process"
import { readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { temporaryFolder } from "../e2e/process.ts"
import { root } from "./sources.ts"

const run = promisify(execFile)

/** npm takes seconds where its cache has all packages, and as long as the registry elsewhere. */
export const installedWithinMs = 600_000

export interface Tarball {
  readonly path: string
  readonly files: ReadonlyArray<string>
  readonly unpackedBytes: number
}

/** The format of npm's own output. */
interface PackReport {
  readonly filename: string
  readonly unpackedSize: number
  readonly files: ReadonlyArray<{ readonly path: string }>
}

/** Packs a workspace as it has been built. */
export const packed = (workspace: string): Tarball => {
  const folder = temporaryFolder()
  const args = ["pack", "--json", "--ignore-scripts", "--pack-destination", folder]
  const output = execFileSync("npm", args, {
    cwd: join(root, workspace),
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"]
  })
  // The format of npm's own output.
  const [report] = JSON.parse(output) as ReadonlyArray<PackReport>
  if (report === undefined) throw new Error(`npm has packed nothing of ${workspace}`)
  const [name = ""] = readdirSync(folder)
  return {
    path: join(folder, name),
    files: report.files.map(({ path }) => path).toSorted(),
    unpackedBytes: report.unpackedSize
  }
}

/** What the compiler says of a program. */
export interface Checked {
  readonly errors: ReadonlyArray<string>
  /** The paths of all declarations that it has read. */
  readonly files: ReadonlyArray<string>
}

/** The types of Node, as `@types/node` of a project, and not those of the DOM. */
export const nodeTypes = {
  lib: ["ES2023"],
  types: ["node"],
  typeRoots: [join(root, "node_modules/@types")],
  module: "NodeNext",
  moduleResolution: "NodeNext"
}

/** A project without anything but what it installs. */
export interface Project {
  readonly folder: string
  readonly write: (name: string, text: string) => void
  /** Runs a program of the project by this Node, and resolves to what it printed. */
  readonly run: (name: string, ...args: ReadonlyArray<string>) => Promise<string>
  /**
   * Compiles a program strictly, with these options of the compiler, and checks all declarations.
   */
  readonly check: (name: string, compilerOptions: object) => Promise<Checked>
  /** Bundles a program by esbuild, for browsers or for Node; `external` stays outside. */
  readonly bundle: (
    name: string,
    platform: "browser" | "node",
    external?: ReadonlyArray<string>
  ) => Promise<string>
  /** The names of the installed packages. */
  readonly packages: () => ReadonlyArray<string>
  /** Installs packages beside the others, by names or paths. */
  readonly install: (...wanted: ReadonlyArray<string>) => Promise<unknown>
}

const packagesIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder).filter((name) => !name.startsWith(".")).flatMap((name) =>
    name.startsWith("@")
      ? readdirSync(join(folder, name)).map((inner) => `${name}/${inner}`)
      : [name]
  )

/** Installs tarballs, and packages by their names, in an empty project. */
export const projectWith = async (...wanted: ReadonlyArray<string>): Promise<Project> => {
  const folder = temporaryFolder()
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text)
  write("package.json", "{ \"private\": true, \"type\": \"module\" }\n")
  const quiet = ["--no-audit", "--no-fund", "--loglevel=error", "--prefer-offline"]
  const install = (...more: ReadonlyArray<string>) =>
    run("npm", ["install", ...quiet, ...more], { cwd: folder })
  await install(...wanted)
  return {
    folder,
    write,
    install,
    run: async (name, ...args) => {
      const { stdout } = await run(process.execPath, [name, ...args], { cwd: folder })
      return stdout
    },
    check: async (name, compilerOptions) => {
      const strict = { strict: true, skipLibCheck: false }
      const options = { ...strict, target: "ES2022", ...compilerOptions }
      write("tsconfig.json", JSON.stringify({ compilerOptions: options, files: [name] }))
      const tsc = join(root, "node_modules/typescript/bin/tsc")
      const args = [tsc, "-p", folder, "--listFiles", "--pretty", "false"]
      // Output of a run that succeeded, or of one that failed.
      const { stdout } = await run(process.execPath, args).catch((error) => error)
      const lines = String(stdout).trim().split("\n")
      const isFile = (line: string) => /^\/.*\.[cm]?ts$/.test(line)
      return { errors: lines.filter((line) => !isFile(line)), files: lines.filter(isFile) }
    },
    bundle: async (name, platform, external = []) => {
      const outfile = join(folder, `${platform}-bundle-of-${name}`.replace(/\.ts$/, ".js"))
      const form = { bundle: true, format: "esm", logLevel: "silent" } as const
      const entryPoints = [join(folder, name)]
      await build({ ...form, entryPoints, platform, outfile, external: [...external] })
      return outfile
    },
    packages: () => packagesIn(join(folder, "node_modules")).toSorted()
  }
}
