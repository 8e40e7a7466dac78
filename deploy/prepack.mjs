#!/usr/bin/env node
/** `npm pack` of any package: installs if necessary, and builds what the packages hold. */
import { build, installIfStale } from "./prepare.mjs"

installIfStale()
process.exitCode = build(".") ? 0 : 1
