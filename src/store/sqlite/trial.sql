-- pets: its key
INSERT INTO pets (name, category_id, status) VALUES ('1e2', 9007199254740993, 'sold');
-- pets: its key
SELECT id FROM pets WHERE name = '1e2';
-- pets: the types of its columns
SELECT quote(name) || quote(category_id) || quote(status) FROM pets WHERE id = 1;
-- pets: what its columns take
DELETE FROM pets WHERE id = 1;
-- pets: what its columns take
INSERT INTO pets (name, category_id, status) VALUES ('Rex', 1, 'sold');
-- pets: AUTOINCREMENT
SELECT id FROM pets WHERE name = 'Rex';
-- pets: what its columns take
INSERT INTO pets (name, category_id, status) VALUES ('Rex', 1, 'sold');
-- pets: pets of an equal name or category
SELECT count(*) FROM pets WHERE name = 'Rex';
-- pets: what its columns take
INSERT INTO pets (name, category_id) VALUES ('Rex', 1);
-- pets: pets of an equal name or category
SELECT count(*) FROM pets WHERE name = 'Rex';
-- pets: what its columns take
UPDATE pets SET name = '', category_id = 7, status = NULL WHERE id = 2;
-- api_keys: its independence of other tables
SELECT count(*) FROM pragma_foreign_key_list('api_keys');
-- api_keys: its key
INSERT INTO api_keys (digest, name, read_only, is_admin, created_at) VALUES (zeroblob(32), '1e2', 0, 1, 7) RETURNING id;
-- api_keys: the types of its columns
SELECT quote(digest) || quote(name) || quote(read_only) || quote(is_admin) || quote(created_at) || quote(expires_at)
    || quote(last_used_at) FROM api_keys WHERE id = 1;
-- api_keys: UNIQUE
INSERT INTO api_keys (digest, name, read_only, is_admin, created_at) VALUES (zeroblob(32), '', 1, 0, 7) RETURNING id;
-- api_keys: what its columns take
UPDATE api_keys SET expires_at = 9, last_used_at = 9 WHERE id = 1 RETURNING id;
-- api_keys: what its columns take
DELETE FROM api_keys WHERE id = 1 RETURNING id;
-- api_keys: AUTOINCREMENT
INSERT INTO api_keys (digest, name, read_only, is_admin, created_at) VALUES (zeroblob(32), '', 1, 0, 7) RETURNING id;
-- deploys: its key
INSERT INTO deploys (deployed_at) VALUES (NULL) RETURNING id;
-- deploys: what its columns take
DELETE FROM deploys WHERE id = 1 RETURNING id;
-- deploys: AUTOINCREMENT
INSERT INTO deploys (deployed_at) VALUES (9) RETURNING id;
-- project: what its columns take
DELETE FROM project WHERE id = 1 RETURNING 1;
-- project: what its columns take
INSERT INTO project (id, plan, deploy) VALUES (1, 'free', NULL) RETURNING id;
-- project: the types of its columns
UPDATE project SET plan = 'pro', deploy = 2 WHERE id = 1 RETURNING quote(plan) || quote(deploy);
-- deploy_files: what its columns take
INSERT INTO deploy_files (deploy, path, content_type, tag, content, gzip) VALUES (2, '1e2', '1e2', '1e2', x'31', x'31');
-- deploy_files: the types of its columns
SELECT quote(path) || quote(content_type) || quote(tag) || quote(content) || quote(gzip) FROM deploy_files WHERE deploy = 2;
-- deploy_files: its key
INSERT INTO deploy_files (deploy, path, content_type, tag, content) VALUES (2, '1e2', '', '', x'');
-- domains: its key
INSERT INTO domains (name, state, since, added_at, is_primary) VALUES ('1e2', 'active', 1, 1, 1)
    ON CONFLICT (name) DO UPDATE SET since = 2 RETURNING quote(name) || quote(since) || quote(is_primary);
-- redirects: its key
INSERT INTO redirects (source, target, status) VALUES ('1e2', '1e3', 301)
    ON CONFLICT (source) DO UPDATE SET status = 302 RETURNING quote(source) || quote(target) || quote(status);
-- imports: its key
INSERT INTO imports (input, at, first_id, last_id) VALUES (zeroblob(32), 1, 1, 1)
    ON CONFLICT (input) DO UPDATE SET at = 2 RETURNING quote(input) || quote(at) || quote(first_id) || quote(last_id);
-- retries: its key
INSERT INTO retries (pet, key, fingerprint, at) VALUES (7, zeroblob(16), zeroblob(16), 1) RETURNING at;
-- retries: the types of its columns
SELECT quote(pet) || quote(key) || quote(fingerprint) || quote(at) FROM retries WHERE pet = 7;
-- retries: its key
INSERT INTO retries (pet, key, fingerprint, at) VALUES (7, randomblob(16), zeroblob(16), 1);
-- retries: UNIQUE
INSERT INTO retries (pet, key, fingerprint, at) VALUES (8, zeroblob(16), zeroblob(16), 1);
-- changes_kept: its key
INSERT INTO changes_kept (id, seconds, from_id) VALUES (1, 1, 1)
    ON CONFLICT (id) DO UPDATE SET seconds = 2 RETURNING quote(seconds) || quote(from_id);
-- changes: its key
INSERT INTO changes (id, at, pet, old_category_id, category_id, old_status, status, key, old_name, name)
    VALUES (7, 1, 7, 1, 2, '1e2', '1e2', '1e2', '1e2', '1e2') RETURNING quote(id) || quote(at) || quote(pet)
    || quote(old_category_id) || quote(category_id) || quote(old_status) || quote(status) || quote(key) || quote(old_name)
    || quote(name);
-- changes: its key
INSERT INTO changes (id, at, pet) VALUES (7, 1, 7);
-- changes: what its columns take
INSERT INTO changes (id, at, pet) VALUES (8, 1, 7) RETURNING id;
-- changes: what its columns take
DELETE FROM changes WHERE id = 8 RETURNING id;
