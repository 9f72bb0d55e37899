import js from '@eslint/js';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['dist', 'node_modules', '.venv*', '.campaigns', 'coverage', 'jest.config.js'] },
  js.configs.recommended,
  ...tseslint.configs.recommended,
  {
    // Workflow code runs in a deterministic sandbox: activities are reachable as types only.
    files: ['src/workflows/**/*.ts'],
    ignores: ['src/workflows/bundle.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              group: ['**/activities/**', 'node:*'],
              allowTypeImports: true,
              message: 'Workflows import activities as types only.',
            },
          ],
        },
      ],
    },
  },
);
